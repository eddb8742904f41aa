// Kinds of labels, and the numbers of classes.
#include <catch2/catch.hpp>

#include "tests/pack/made_source.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

namespace {

using Strings = std::vector<std::string>;

MadeInput Of(const std::string& key, LabelKind kind, const std::string& text, std::int64_t number = 0) {
  MadeInput input;
  input.key = key;
  input.kind = kind;
  input.label_text = text;
  input.number = number;
  return input;
}
MadeInput OfClass(const std::string& key, const std::string& name) { return Of(key, LabelKind::kClass, name); }
MadeInput OfNumber(const std::string& key, std::int64_t number) { return Of(key, LabelKind::kInteger, "", number); }

std::string WhyNot(PlanBench& bench, const PlanBase* base = nullptr) {
  try {
    bench.Write(base);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

std::vector<std::int64_t> Labels(PlanBench& bench) {
  std::vector<std::int64_t> labels;
  const PlannedShard shard = Plan::Open(bench.File()).Shard(0);
  for (const PlannedInput& input : shard.inputs) labels.push_back(input.label);
  return labels;
}

}  // namespace

TEST_CASE("classes are numbered in byte order of all names, those without inputs too", "[plan]") {
  PlanBench bench;
  MadeSource& tree = bench.Add("tree", {OfClass("1", "b"), OfClass("2", "B"), OfClass("3", "10"), OfClass("4", "2")});
  tree.classes = {"empty", "b"};
  const PlanHead head = bench.Write();
  CHECK(head.classes == Strings{"10", "2", "B", "b", "empty"});
  CHECK(head.label_kind == LabelKind::kClass);
  CHECK(head.warnings == Strings{"class empty has no images"});
  CHECK(Labels(bench) == std::vector<std::int64_t>{3, 2, 0, 1});
}

TEST_CASE("a dataset's order of classes is kept, names of other sources follow", "[plan]") {
  PlanBench bench;
  MadeSource& dataset = bench.Add("dataset", {OfClass("1", "dog"), OfClass("2", "cat")}, SourceKind::kDataset);
  dataset.classes = {"dog", "cat", "unused"};
  dataset.keep_order = true;
  bench.Add("tree", {OfClass("3", "ant"), OfClass("4", "cat"), OfClass("5", "bee")});
  CHECK(bench.Write().classes == Strings{"dog", "cat", "unused", "ant", "bee"});
  CHECK(Labels(bench) == std::vector<std::int64_t>{0, 1, 3, 1, 4});
}

TEST_CASE("pinned classes give the numbers", "[plan]") {
  PlanBench bench;
  bench.options.classes = Strings{"dog", "cat"};
  SECTION("to names") {
    bench.Add("tree", {OfClass("1", "cat"), OfClass("2", "dog")}).classes = {"passed over", "cat"};
    CHECK(bench.Write().classes == Strings{"dog", "cat"});
    CHECK(Labels(bench) == std::vector<std::int64_t>{1, 0});
  }
  SECTION("and names to numbers") {
    bench.Add("list", {OfNumber("1", 1), OfClass("2", "dog")}, SourceKind::kCsv);
    const PlanHead head = bench.Write();
    CHECK(head.label_kind == LabelKind::kClass);
    CHECK(head.classes == Strings{"dog", "cat"});
    CHECK(Labels(bench) == std::vector<std::int64_t>{1, 0});
  }
  SECTION("no other class") {
    bench.Add("tree", {OfClass("1", "cat"), OfClass("2", "bird")});
    CHECK(WhyNot(bench) == "class bird in tree/2 is not in the list of classes that was given");
    bench.options.exclude = {"2"};
    CHECK(bench.Write().num_inputs == 1);
  }
  SECTION("no number outside") {
    const std::int64_t number = GENERATE(-1, 2);
    bench.Add("list", {OfNumber("1", number)}, SourceKind::kCsv);
    CHECK(WhyNot(bench) ==
          "list/1 has the label " + std::to_string(number) + ", and the classes are numbered from 0 to 1");
  }
  SECTION("each once") {
    bench.Add("tree", {OfClass("1", "cat")});
    bench.options.classes = Strings{"cat", "dog", "cat"};
    CHECK(WhyNot(bench) == "class cat stands twice in the list of classes");
  }
}

TEST_CASE("labels of two kinds are an error that names both inputs", "[plan]") {
  PlanBench bench;
  bench.options.threads = 1;
  bench.Add("one", {OfNumber("1", 7)}, SourceKind::kCsv);
  SECTION("a name") {
    bench.Add("two", {OfClass("2", "cat")}, SourceKind::kJsonl);
    CHECK(WhyNot(bench) == "labels of different kinds: one/1 has a whole number, two/2 has a class name");
  }
  SECTION("a list") {
    bench.Add("two", {Of("2", LabelKind::kList, "[1]")}, SourceKind::kJsonl);
    CHECK(WhyNot(bench) == "labels of different kinds: one/1 has a whole number, two/2 has a list of numbers");
  }
  SECTION("a fraction") {
    bench.Add("two", {Of("2", LabelKind::kFloat, "0.5")}, SourceKind::kJsonl);
    CHECK(WhyNot(bench) == "labels of different kinds: one/1 has a whole number, two/2 has a fractional number");
  }
}

TEST_CASE("whole numbers of 64 bits are kept exactly", "[plan]") {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min(), kMost = std::numeric_limits<std::int64_t>::max();
  PlanBench bench;
  bench.Add("list", {OfNumber("a", kLeast), OfNumber("b", kMost), OfNumber("c", -1), OfNumber("d", 9007199254740993)},
            SourceKind::kCsv);
  const PlanHead head = bench.Write();
  CHECK(head.label_kind == LabelKind::kInteger);
  CHECK(head.classes.empty());
  CHECK(Labels(bench) == std::vector<std::int64_t>{kLeast, kMost, -1, 9007199254740993});
}

TEST_CASE("lists and fractions become the first member of the metadata", "[plan]") {
  PlanBench bench;
  std::vector<MadeInput> inputs;
  for (const char* metadata : {"", "{}", "{ }", "{\"a\":1}", " { \"a\": {}}"}) {
    inputs.push_back(Of(std::to_string(inputs.size()), LabelKind::kList, "[1,5,-7]"));
    inputs.back().metadata = metadata;
  }
  bench.Add("list", inputs, SourceKind::kJsonl);
  CHECK(bench.Write().label_kind == LabelKind::kList);
  const PlannedShard shard = Plan::Open(bench.File()).Shard(0);
  Strings metadata;
  for (const PlannedInput& input : shard.inputs) metadata.emplace_back(input.metadata);
  CHECK(metadata == Strings{"{\"label\":[1,5,-7]}", "{\"label\":[1,5,-7]}", "{\"label\":[1,5,-7]}",
                            "{\"label\":[1,5,-7],\"a\":1}", "{\"label\":[1,5,-7],\"a\": {}}"});
}

TEST_CASE("class numbers and the request's keys do not depend on what filters leave", "[plan]") {
  PlanBench bench;
  bench.options.include = {"*/c*"};
  bench.Add("tree", {OfClass("a/1", "a"), OfClass("b/1", "b"), OfClass("c/c1", "c"), OfClass("d/c2", "d")});
  const PlanHead head = bench.Write();
  CHECK(head.classes == Strings{"a", "b", "c", "d"});
  CHECK(head.num_inputs == 2);
  CHECK(head.warnings.empty());
  CHECK(Labels(bench) == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("what is added to a dataset keeps its classes, shards and keys", "[plan]") {
  Manifest manifest;
  manifest.classes = {"dog", "cat"};
  manifest.dataset_digest = {1, 2};
  manifest.shards.resize(2);
  manifest.shards[0].file = "shard-00000-01234567.shard";
  manifest.shards[1].file = "shard-00004-89abcdef.shard";
  PlanBase base;
  base.manifest = &manifest;
  base.has_key = [](std::string_view key) { return key == "there"; };
  PlanBench bench;
  SECTION("known classes") {
    bench.Add("tree", {OfClass("1", "cat")});
    const PlanHead head = bench.Write(&base);
    CHECK(head.classes == Strings{"dog", "cat"});
    CHECK(head.base_dataset == manifest.dataset_digest);
    CHECK(head.first_shard == 5);
    CHECK(head.warnings.empty());
    CHECK(Plan::Open(bench.File()).Shard(0).number == 5);
    CHECK(Labels(bench) == std::vector<std::int64_t>{1});
    CHECK(bench.Write().request_digest != head.request_digest);
  }
  SECTION("an unknown class") {
    bench.Add("tree", {OfClass("1", "ant"), OfClass("2", "Bee")});
    CHECK_THAT(WhyNot(bench, &base), Contains("class ant in tree/1 is not a class of the dataset; --new-classes"));
    base.new_classes = true;
    CHECK(bench.Write(&base).classes == Strings{"dog", "cat", "Bee", "ant"});
    CHECK(Labels(bench) == std::vector<std::int64_t>{3, 2});
  }
  SECTION("a number is one of its classes, never of a class that comes with it") {
    MadeSource& other = bench.Add("other", {OfClass("1", "ant")}, SourceKind::kDataset);
    other.classes = {"ant", "cat"};
    other.keep_order = true;
    base.new_classes = true;
    bench.Add("list", {OfNumber("2", 1), OfNumber("3", 0)}, SourceKind::kCsv);
    CHECK(bench.Write(&base).classes == Strings{"dog", "cat", "ant"});
    CHECK(Labels(bench) == std::vector<std::int64_t>{2, 1, 0});
    bench.Add("more", {OfNumber("4", 2)}, SourceKind::kCsv);
    CHECK(WhyNot(bench, &base) == "more/4 has the label 2, and the classes are numbered from 0 to 1");
  }
  SECTION("a key that is there") {
    bench.Add("tree", {OfClass("there", "cat")});
    CHECK(WhyNot(bench, &base) == "the dataset has the key there of tree/there already");
  }
  SECTION("labels of another kind") {
    bench.Add("list", {Of("1", LabelKind::kFloat, "0.5")}, SourceKind::kJsonl);
    CHECK(WhyNot(bench, &base) ==
          "labels of different kinds: the dataset has a class name, list/1 has a fractional number");
  }
}
