#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "libshard/pack/source.h"
#include "shardpack/error.h"
#include "tests/pack/archives/collecting_sink.h"
#include "tests/pack/made_tree.h"
#include "tests/support/shard_builder.h"

namespace shardpack::testing {
namespace {

using Catch::Matchers::Contains;

PackOptions Of(std::vector<fs::path> paths, SourceKind from = SourceKind::kAuto) {
  PackOptions options;
  options.sources = std::move(paths);
  options.from = from;
  return options;
}

std::vector<CollectedInput> InOrder(const CollectingSink& sink) {
  std::vector<CollectedInput> inputs = sink.inputs;
  std::sort(inputs.begin(), inputs.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  return inputs;
}

std::string ReadText(Source& source, const CollectedInput& input) {
  std::string text(input.size, '\0');
  source.Read(input.AsPlanned(), reinterpret_cast<std::byte*>(text.data()));
  return text;
}

struct Record {
  std::string key;
  std::int64_t label;
  std::string metadata, content;
};

// Two shards, each with half of the records.
Manifest MakeDataset(const fs::path& folder, LabelKind kind, const std::vector<Record>& records,
                     std::vector<std::string> classes = {}) {
  std::vector<test::ShardBuilder> shards(2);
  for (test::ShardBuilder& shard : shards) shard.options.class_names = classes;
  for (std::size_t i = 0; i < records.size(); ++i) {
    test::TestRecord record;
    record.key = records[i].key;
    record.label = records[i].label;
    record.metadata = records[i].metadata;
    record.raw = test::ToBytes(records[i].content);
    record.codec = i % 2 == 0 ? Codec::kZstd : Codec::kStored;
    shards[i * 2 / records.size()].Add(record);
  }
  Manifest manifest = test::WriteDataset(folder, shards);
  manifest.label_kind = kind;
  manifest.classes = std::move(classes);
  manifest.Commit(folder);
  return manifest;
}

TEST_CASE("a dataset's records come as they were given, with the classes in its order", "[source][dataset]") {
  test::TempFolder folder;
  const std::vector<Record> records = {{"z/1.jpg", 2, "", std::string(5000, 'a')},
                                       {"a/2.jpg", 0, R"({"note": [1.10, "label"]})", "bb"},
                                       {"k", 1, "", "c"},
                                       {"b", 2, R"({"label":3})", "dddd"}};
  MakeDataset(folder.path(), LabelKind::kClass, records, {"zebra", "ape", "cat"});
  for (const fs::path& path : {folder.path(), folder / kManifestName}) {
    const auto sources = OpenSources(Of({path}));
    CHECK(sources.at(0)->kind() == SourceKind::kDataset);
    CollectingSink sink;
    sources[0]->Scan(nullptr, sink);
    CHECK(sink.classes == std::vector<std::string>{"zebra", "ape", "cat"});
    const auto inputs = InOrder(sink);
    REQUIRE(inputs.size() == 4);
    const std::vector<std::string> names = {"cat", "zebra", "ape", "cat"};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      CHECK(inputs[i].key == records[i].key);
      CHECK(inputs[i].label_kind == LabelKind::kClass);
      CHECK(inputs[i].label_text == names[i]);
      CHECK(inputs[i].metadata == records[i].metadata);
      CHECK(ReadText(*sources[0], inputs[i]) == records[i].content);
      CHECK(sources[0]->IsAsPlanned(inputs[i].AsPlanned()));
    }
    CHECK(sources[0]->Describe(inputs[1].AsPlanned()) == path.native() + ": a/2.jpg");
  }
}

TEST_CASE("labels of a dataset that stand in the metadata are taken out of it with every digit", "[source][dataset]") {
  test::TempFolder folder;
  MakeDataset(folder / "floats", LabelKind::kFloat,
              {{"a", 0, R"({"label":16777217})", "1"}, {"b", 0, R"({"label":1e+300,"x":"y z"})", "2"}});
  CollectingSink floats;
  OpenSources(Of({folder / "floats"})).at(0)->Scan(nullptr, floats);
  CHECK(InOrder(floats)[0].label_text == "16777217");
  CHECK(InOrder(floats)[0].label_kind == LabelKind::kFloat);
  CHECK(InOrder(floats)[0].metadata.empty());
  CHECK(InOrder(floats)[1].label_text == "1e+300");
  CHECK(InOrder(floats)[1].metadata == R"({"x":"y z"})");

  MakeDataset(folder / "lists", LabelKind::kList,
              {{"a", 0, R"({"label":[1,9007199254740993]})", "1"}, {"b", 0, R"({"label":[]})", "2"}});
  CollectingSink lists;
  OpenSources(Of({folder / "lists"})).at(0)->Scan(nullptr, lists);
  CHECK(InOrder(lists)[0].label_text == "[1,9007199254740993]");
  CHECK(InOrder(lists)[1].label_text == "[]");
}

TEST_CASE("whole labels of a dataset without classes are numbers of 64 bits", "[source][dataset]") {
  test::TempFolder folder;
  MakeDataset(folder.path(), LabelKind::kInteger, {{"a", INT64_MIN, "", "1"}, {"b", INT64_MAX, R"({"label":7})", "2"}});
  CollectingSink sink;
  OpenSources(Of({folder.path()})).at(0)->Scan(nullptr, sink);
  CHECK(InOrder(sink)[0].label_number == INT64_MIN);
  CHECK(InOrder(sink)[1].label_number == INT64_MAX);
  CHECK(InOrder(sink)[1].metadata == R"({"label":7})");
  CHECK(sink.classes.empty());
}

TEST_CASE("a dataset whose labels contradict its manifest is corrupt", "[source][dataset]") {
  test::TempFolder folder;
  const auto scan = [&](const char* name) {
    CollectingSink sink;
    OpenSources(Of({folder / name})).at(0)->Scan(nullptr, sink);
  };
  MakeDataset(folder / "class", LabelKind::kClass, {{"a", 1, "", "1"}, {"b", 3, "", "2"}}, {"x", "y", "z"});
  CHECK_THROWS_WITH(scan("class"), Contains("record 0") && Contains("label 3"));
  MakeDataset(folder / "list", LabelKind::kList, {{"a", 0, R"({"label":[1]})", "1"}, {"b", 0, R"({"x":1})", "2"}});
  CHECK_THROWS_WITH(scan("list"), Contains("has no label of the dataset's kind"));
  MakeDataset(folder / "text", LabelKind::kFloat, {{"a", 0, R"({"label":1.5})", "1"}, {"b", 0, "nonsense", "2"}});
  CHECK_THROWS_WITH(scan("text"), Contains("JSON"));
}

TEST_CASE("a damaged record of a dataset is a bad input, a missing shard stops the scan", "[source][dataset]") {
  test::TempFolder folder;
  const std::string content(1000, 'x');
  const Manifest manifest =
      MakeDataset(folder.path(), LabelKind::kInteger, {{"a", 1, "", "first"}, {"b", 2, "", content}});
  const fs::path shard = folder / manifest.shards[1].file;
  std::string bytes = ReadFile(shard);
  const std::size_t at = bytes.find(content);
  REQUIRE(at != std::string::npos);
  bytes[at + 500] = 'y';
  std::ofstream(shard, std::ios::binary) << bytes;

  const auto source = std::move(OpenSources(Of({folder.path()})).at(0));
  CollectingSink sink;
  source->Scan(nullptr, sink);
  const auto inputs = InOrder(sink);
  CHECK(ReadText(*source, inputs[0]) == "first");
  try {
    ReadText(*source, inputs[1]);
    FAIL("read a damaged record");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kBadInput);
    CHECK_THAT(e.what(), Contains("checksum") && Contains(manifest.shards[1].file));
  }

  fs::remove(shard);
  CollectingSink again;
  CHECK_THROWS_WITH(OpenSources(Of({folder.path()})).at(0)->Scan(nullptr, again), Contains("missing"));
}

TEST_CASE("a record that a dataset does not have as planned is not as planned", "[source][dataset]") {
  test::TempFolder folder;
  MakeDataset(folder.path(), LabelKind::kInteger, {{"a", 1, "", "12"}, {"b", 2, "", "345"}});
  const auto source = std::move(OpenSources(Of({folder.path()})).at(0));
  CollectingSink sink;
  source->Scan(nullptr, sink);
  CollectedInput input = InOrder(sink)[1];
  CHECK(source->IsAsPlanned(input.AsPlanned()));
  input.key = "c";
  CHECK_FALSE(source->IsAsPlanned(input.AsPlanned()));
  input.key = "b";
  input.size = 4;
  CHECK_FALSE(source->IsAsPlanned(input.AsPlanned()));
  input.sequence = 2;
  CHECK_FALSE(source->IsAsPlanned(input.AsPlanned()));
  std::byte byte;
  CHECK_THROWS_AS(source->Read(input.AsPlanned(), &byte), Error);
}

TEST_CASE("sources are opened in their order, and none twice, be it through a link", "[source]") {
  TemporaryFolder folder;
  WriteFile(folder / "one" / "a/1.jpg", "x");
  WriteFile(folder / "list.csv", "path,label\none/a/1.jpg,cat\n");
  const auto sources = OpenSources(Of({folder / "list.csv", folder / "one"}));
  REQUIRE(sources.size() == 2);
  CHECK(sources[0]->kind() == SourceKind::kCsv);
  CHECK(sources[1]->kind() == SourceKind::kFolder);
  CHECK_THROWS_WITH(OpenSources(Of({folder / "one", folder / "one"})), Contains("given twice"));
  fs::create_directory_symlink("one", folder / "same");
  CHECK_THROWS_WITH(OpenSources(Of({folder / "one", folder / "same"})), Contains("a second time as"));
  CHECK_THROWS_WITH(OpenSources(Of({})), Contains("no source"));
}

TEST_CASE("what a sink throws ends a scan as it is", "[source]") {
  struct Refusing : CollectingSink {
    void Add(const FoundInput& input) override {
      if (input.key == "a/700.jpg") throw Error(ErrorCode::kInvalidArgument, "refused by the sink");
      CollectingSink::Add(input);
    }
  };
  TemporaryFolder folder;
  std::string list = "path,label\n";
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "a/" + std::to_string(i) + ".jpg";
    WriteFile(folder / key, "x");
    list += key + ",1\n";
  }
  WriteFile(folder / "list.csv", list);
  fs::create_directory(folder / "tree");
  fs::rename(folder / "a", folder / "tree/a");
  for (const char* path : {"list.csv", "tree"}) {
    Refusing sink;
    CHECK_THROWS_WITH(OpenSources(Of({folder / path})).at(0)->Scan(nullptr, sink), "refused by the sink");
  }
}

TEST_CASE("a scan stops when it is told to", "[source]") {
  TemporaryFolder folder;
  WriteFile(folder / "tree/a/1.jpg", "x");
  WriteFile(folder / "list.csv", "path,label\ntree/a/1.jpg,1\n");
  WriteFile(folder / "list.jsonl", R"({"path": "tree/a/1.jpg", "label": 1})");
  MakeDataset(folder / "data", LabelKind::kInteger, {{"a", 1, "", "12"}, {"b", 2, "", "345"}});
  const std::atomic<bool> stop{true};
  for (const char* path : {"tree", "list.csv", "list.jsonl", "data"}) {
    CollectingSink sink;
    CHECK_THROWS_AS(OpenSources(Of({folder / path})).at(0)->Scan(&stop, sink), Interrupted);
    CHECK(sink.inputs.empty());
  }
}

}  // namespace
}  // namespace shardpack::testing
