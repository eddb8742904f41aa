#include <catch2/catch.hpp>

#include "shardpack/error.h"
#include "shardpack/shard_writer.h"
#include "tests/pack/made_tree.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

namespace {

ExtractOptions To(const fs::path& dataset, const fs::path& output, ExtractTo to = ExtractTo::kFolder) {
  ExtractOptions options;
  options.dataset = dataset;
  options.output = output;
  options.to = to;
  return options;
}

// A shard of one record with the key.
fs::path ShardWithKey(const TemporaryFolder& folder, std::string_view key) {
  const fs::path path = folder / "one.shard";
  const std::string content = "content";
  ShardWriter writer(path, {});
  RecordToWrite record;
  record.key = key;
  record.payload = AsBytes(content);
  record.info.stored_bytes = record.info.raw_bytes = static_cast<std::uint32_t>(content.size());
  record.info.stored_xxh3 = record.info.encoded_xxh3 = Xxh3_64(record.payload);
  writer.Append(record);
  writer.Finish();
  return path;
}

}  // namespace

TEST_CASE("extracting gives the files again", "[extract]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  Convert(Options(tree, folder / "out"));
  CHECK(Extract(To(folder / "out", folder / "again" / "deep")) == 12);
  for (const auto& entry : fs::recursive_directory_iterator(tree)) {
    if (entry.is_regular_file())
      CHECK(ReadFile(folder / "again" / "deep" / fs::relative(entry.path(), tree).native()) == ReadFile(entry.path()));
  }
}

TEST_CASE("a key that would leave the folder is refused before anything is written", "[extract]") {
  for (const char* key : {"../out.png", "/etc/passwd", "a/../../b", "a/.", "..", "a/", ".", "./../a", "//a"}) {
    TemporaryFolder folder;
    const fs::path shard = ShardWithKey(folder, key);
    for (const ExtractTo to : {ExtractTo::kFolder, ExtractTo::kTar}) {
      try {
        Extract(To(shard, folder / "again", to));
        FAIL("no error for " << key);
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kCorruption);
        CHECK_THAT(error.what(), Contains("would leave"));
      }
      CHECK_FALSE(fs::exists(folder / "again"));
    }
  }
}

TEST_CASE("parts of a key that lead nowhere are left out of the name", "[extract]") {
  for (const char* key : {"./a/b", "a//b", ".//a/././/b"}) {
    TemporaryFolder folder;
    CHECK(Extract(To(ShardWithKey(folder, key), folder / "again")) == 1);
    CHECK(ReadFile(folder / "again" / "a" / "b") == "content");
  }
}

TEST_CASE("two keys of one path become two files", "[extract]") {
  TemporaryFolder folder;
  MakeTree(folder);
  WriteFile(folder / "a.ppm", Ppm(4, 3, 'a'));
  WriteFile(folder / "list.csv", "path,label\n./a.ppm,1\na.ppm,2\n");
  Convert(Options(folder / "list.csv", folder / "out"));
  CHECK(Extract(To(folder / "out", folder / "again")) == 2);
  CHECK(ReadFile(folder / "again" / "a.ppm") == Ppm(4, 3, 'a'));
  CHECK(ReadFile(folder / "again" / "a.ppm.ppm") == Ppm(4, 3, 'a'));
}

TEST_CASE("nothing that exists is overwritten", "[extract]") {
  TemporaryFolder folder;
  Convert(Options(MakeTree(folder), folder / "out"));
  WriteFile(folder / "full" / "file", "precious");
  WriteFile(folder / "a.tar", "precious");
  CHECK_THROWS_WITH(Extract(To(folder / "out", folder / "full")), Contains("not empty"));
  CHECK_THROWS_AS(Extract(To(folder / "out", folder / "a.tar", ExtractTo::kTar)), Error);
  CHECK(ReadFile(folder / "a.tar") == "precious");
}
