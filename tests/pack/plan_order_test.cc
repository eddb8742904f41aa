// In which order inputs are planned, and what a key that comes twice does.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/pack/made_source.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

namespace {

using Strings = std::vector<std::string>;

std::string WhyNot(PlanBench& bench) {
  try {
    bench.Write();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    CHECK_FALSE(fs::exists(bench.File()));
    CHECK(fs::is_empty(bench.folder / "scratch"));
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("keys are ordered by the bytes of the whole path, a folder as its name and a slash", "[plan]") {
  PlanBench bench;
  bench.Add("tree", OfKeys({"c/a/1", "c/a-b", "c/a 0", "c/a0", "c/a", "c-d/x", "c\xff", "c d/x", "B/x"}));
  CHECK(bench.Keys() == Strings{"B/x", "c d/x", "c-d/x", "c/a", "c/a 0", "c/a-b", "c/a/1", "c/a0", "c\xff"});
}

TEST_CASE("order source keeps a list's order, source after source", "[plan]") {
  PlanBench bench;
  bench.options.order = RecordOrder::kSource;
  bench.Add("one", OfKeys({"z", "b", "y"}), SourceKind::kCsv);
  bench.Add("tree", OfKeys({"t", "s"}));
  bench.Add("two", OfKeys({"c", "a"}), SourceKind::kTar);
  CHECK(bench.Keys() == Strings{"z", "b", "y", "s", "t", "c", "a"});
}

TEST_CASE("without an order folders go by name, and where another source is among them as listed", "[plan]") {
  PlanBench bench;
  bench.Add("tree", OfKeys({"m", "a"}));
  bench.Add("other", OfKeys({"b"}));
  CHECK(bench.Keys() == Strings{"a", "b", "m"});
  bench.sources.clear();
  bench.options.sources.clear();
  bench.Add("tree", OfKeys({"m", "a"}));
  bench.Add("list", OfKeys({"z", "b"}), SourceKind::kCsv);
  CHECK(bench.Keys() == Strings{"a", "m", "z", "b"});
}

TEST_CASE("more than 65,536 inputs of a list stay in its order", "[plan]") {
  Strings keys;
  for (int i = 0; i < 70000; ++i) keys.push_back(std::to_string(i * 7919 % 70001));
  PlanBench bench;
  bench.Add("list", OfKeys(keys), SourceKind::kJsonl);
  CHECK(bench.Keys() == keys);
}

TEST_CASE("order shuffled is a permutation that the seed and the keys decide", "[plan]") {
  Strings keys;
  for (int i = 100; i < 400; ++i) keys.push_back("c/" + std::to_string(i));
  const auto shuffled = [&](std::uint64_t seed, int threads, bool backwards) {
    PlanBench bench;
    bench.options.order = RecordOrder::kShuffled;
    bench.options.order_seed = seed;
    bench.options.threads = threads;
    auto listed = keys;
    if (backwards) std::reverse(listed.begin(), listed.end());
    bench.Add("list", OfKeys(listed), SourceKind::kCsv);
    return bench.Keys();
  };
  const Strings once = shuffled(7, 1, false);
  CHECK(once != keys);
  CHECK(std::set<std::string>(once.begin(), once.end()) == std::set<std::string>(keys.begin(), keys.end()));
  CHECK(once.size() == keys.size());
  CHECK(shuffled(7, 2, true) == once);
  CHECK(shuffled(8, 1, false) != once);
}

TEST_CASE("a compressed archive is never planned backwards", "[plan]") {
  PlanBench bench;
  MadeSource& stream = bench.Add("in.tar.gz", OfKeys({"b", "c", "a"}), SourceKind::kTar);
  stream.stream = true;
  SECTION("by name, where that is another order than its own") {
    bench.options.order = RecordOrder::kName;
    CHECK_THAT(WhyNot(bench), Contains("in.tar.gz/b would be packed after what lies behind it"));
    bench.options.exclude = {"a"};  // which came last
    CHECK(WhyNot(bench) == "no error");
    bench.options.exclude.clear();
    stream.stream = false;
    CHECK(WhyNot(bench) == "no error");
  }
  SECTION("shuffled") {
    bench.options.order = RecordOrder::kShuffled;
    CHECK_THAT(WhyNot(bench), Contains("in.tar.gz is compressed") && Contains("--order source"));
    stream.stream = false;
    CHECK(WhyNot(bench) == "no error");
  }
  SECTION("as listed") { CHECK(bench.Keys() == Strings{"b", "c", "a"}); }
}

TEST_CASE("a key that comes twice is an error naming both inputs, in every order", "[plan]") {
  const auto order = GENERATE(RecordOrder::kName, RecordOrder::kSource, RecordOrder::kShuffled);
  PlanBench bench;
  bench.options.order = order;
  std::vector<MadeInput> inputs = OfKeys({"a", "twice", "m", "twice", "z"});
  inputs[1].locator = "line2";
  inputs[3].locator = "line4";
  bench.Add("list", inputs, SourceKind::kCsv);
  CHECK(WhyNot(bench) == "two inputs have the key twice: list/twice#line2 and list/twice#line4");
}

TEST_CASE("keys of several sources are prefixed by their names only where they clash", "[plan]") {
  const auto order = GENERATE(RecordOrder::kName, RecordOrder::kSource);
  PlanBench bench;
  bench.options.order = order;
  bench.Add("b", OfKeys({"c/1"}));
  SECTION("no clash") {
    bench.Add("a", OfKeys({"c/2"}));
    CHECK(bench.Keys() == Strings{"c/1", "c/2"});
  }
  SECTION("a clash") {
    bench.Add("a", OfKeys({"c/1", "d/2"}));
    CHECK(bench.Keys() ==
          (order == RecordOrder::kName ? Strings{"a/c/1", "a/d/2", "b/c/1"} : Strings{"b/c/1", "a/c/1", "a/d/2"}));
    const Plan plan = Plan::Open(bench.File());
    const PlannedShard shard = plan.Shard(0);
    for (const PlannedInput& input : shard.inputs) {
      CHECK(input.key_skip == 2);
      CHECK(input.key.substr(0, 1) == (input.source == 0 ? "b" : "a"));
    }
  }
  SECTION("a clash although prefixed") {
    bench.Add("elsewhere/b", OfKeys({"c/1"}));
    CHECK(WhyNot(bench) == "two inputs have the key b/c/1: b/c/1 and elsewhere/b/c/1");
  }
  SECTION("twice in one of the sources") {
    bench.Add("list", OfKeys({"x", "y", "x"}), SourceKind::kCsv);
    CHECK(WhyNot(bench) == "two inputs have the key list/x: list/x and list/x");
  }
}

TEST_CASE("shuffled order with a clash is that of the prefixed keys", "[plan]") {
  PlanBench clashing, plain;
  for (PlanBench* bench : {&clashing, &plain}) bench->options.order = RecordOrder::kShuffled;
  clashing.Add("a", OfKeys({"1", "2", "3", "4"}));
  clashing.Add("b", OfKeys({"3", "4", "5"}));
  plain.Add("all", OfKeys({"a/1", "a/2", "a/3", "a/4", "b/3", "b/4", "b/5"}));
  CHECK(clashing.Keys() == plain.Keys());
}
