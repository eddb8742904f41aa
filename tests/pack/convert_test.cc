#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "tests/pack/made_tree.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

TEST_CASE("every file comes back byte for byte, with its label and size", "[convert]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  const PackResult result = Convert(Options(tree, folder / "out"));
  CHECK(result.sealed);
  CHECK(result.manifest.records == 12);
  CHECK(result.manifest.bad_inputs == 0);
  const Dataset dataset = Dataset::Open(folder / "out");
  REQUIRE(dataset.size() == 12);
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    const std::string key(dataset.Key(i));
    dataset.Read(i, bytes);
    CHECK(AsText(bytes) == ReadFile(tree / key));
    CHECK(dataset.Info(i).label == key[5] - '0');  // "classN/..."
    CHECK(dataset.Find(key) == i);
  }
}

TEST_CASE("pixels lying plain are compressed, PNG is stored", "[convert]") {
  TemporaryFolder folder;
  WriteFile(folder / "tree" / "a/1.ppm", Ppm(64, 64, 'x'));
  WriteFile(folder / "tree" / "a/2.png", Png(64, 64, 9));
  Convert(Options(folder / "tree", folder / "out"));
  const Dataset dataset = Dataset::Open(folder / "out");
  CHECK(dataset.Info(0).codec == Codec::kZstd);
  CHECK(dataset.Info(0).stored_bytes < 1000);
  CHECK(dataset.Info(0).raw_bytes == Ppm(64, 64, 'x').size());
  CHECK(dataset.Info(1).codec == Codec::kStored);
}

TEST_CASE("the output is the same whatever the number of threads and the memory", "[convert]") {
  TemporaryFolder folder;
  const fs::path root = folder / "tree";
  for (int i = 0; i < 300; ++i)
    WriteFile(root / std::to_string(i % 7) / (std::to_string(i) + ".ppm"),
              i % 50 == 3 ? "" : Ppm(1 + i % 17, 3, static_cast<char>(i)));
  PackOptions options = Options(root, folder / "1");
  options.shard_records = 100;
  options.threads = 1;
  Convert(options);
  const auto expected = FilesOf(folder / "1");
  CHECK(expected.size() == 3 + 2);  // shards, manifest, ledger
  for (const int threads : {2, 7}) {
    options.threads = threads;
    options.memory_bytes = 1024;
    options.output = folder / std::to_string(threads);
    Convert(options);
    CHECK(FilesOf(options.output) == expected);
  }
}

TEST_CASE("the dataset's digest does not depend on the shard size", "[convert]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  PackOptions options = Options(tree, folder / "one");
  const Digest128 one = Convert(options).manifest.dataset_digest;
  options.output = folder / "many";
  options.shard_records = 5;
  const Manifest many = Convert(options).manifest;
  CHECK(many.shards.size() == 3);
  CHECK(many.dataset_digest == one);
}

TEST_CASE("a skipped input stands in the ledger with its reason, and a later clean run removes the ledger",
          "[convert]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  WriteFile(tree / "class0/empty.png", "");
  WriteFile(tree /
                "class1/b\xFF"
                "d.jpg",
            "<html>");
  WriteFile(tree / "class2/cut.png", Png(20, 20, 1).substr(0, 50));
  fs::create_symlink("nowhere", tree / "class2" / "gone.png");
  const PackResult result = Convert(Options(tree, folder / "out"));
  CHECK(result.manifest.records == 12);
  CHECK(result.manifest.bad_inputs == 4);
  std::istringstream ledger(ReadFile(folder / "out" / kLedgerName));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(ledger, line);) lines.push_back(nlohmann::json::parse(line));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["key"] == "class0/empty.png");
  CHECK(lines[0]["source"] == (tree / "class0/empty.png").native());
  CHECK_THAT(lines[0]["reason"].get<std::string>(), Contains("empty"));
  CHECK(lines[1]["key_hex"] == "636c617373312f62ff642e6a7067");
  CHECK(lines[2]["key"] == "class2/cut.png");
  CHECK(lines[2].contains("offset"));
  CHECK_THAT(lines[3]["reason"].get<std::string>(), Contains("dangling"));

  for (const char* bad : {"class0/empty.png",
                          "class1/b\xFF"
                          "d.jpg",
                          "class2/cut.png", "class2/gone.png"})
    fs::remove(tree / bad);
  PackOptions again = Options(tree, folder / "out");
  again.overwrite = true;
  Convert(again);
  CHECK_FALSE(fs::exists(folder / "out" / kLedgerName));
}

TEST_CASE("under fail the first bad input in order of keys is named, and nothing is left", "[convert]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  WriteFile(tree / "class1/bad.png", "");
  WriteFile(tree / "class2/bad.png", "");
  PackOptions options = Options(tree, folder / "out");
  options.on_error = OnError::kFail;
  options.threads = 7;
  try {
    Convert(options);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK_THAT(error.what(), Contains("class1/bad.png") && Contains("empty"));
  }
  CHECK_FALSE(fs::exists(folder / "out"));
}

TEST_CASE("more bad inputs than the limit end the run", "[convert]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  WriteFile(tree / "class1/bad.png", "");
  WriteFile(tree / "class2/bad.png", "");
  PackOptions options = Options(tree, folder / "out");
  SECTION("a count") { options.max_bad = 1; }
  SECTION("a share") { options.max_bad_share = 0.1; }  // of 14: one
  CHECK_THROWS_WITH(Convert(options), Contains("class2/bad.png") && Contains("limit is 1"));
  options.max_bad = 2;
  options.max_bad_share.reset();
  CHECK(Convert(options).manifest.bad_inputs == 2);
}

TEST_CASE("a header check finds pictures that lost their end", "[convert]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  const std::string whole = Png(20, 20, 1);
  WriteFile(tree / "class2/cut.png", whole.substr(0, whole.size() - 3));
  WriteFile(tree / "class2/tail.png", whole + "bytes after the end");
  PackOptions options = Options(tree, folder / "out");
  options.verify_images = VerifyImages::kHeader;
  const PackResult result = Convert(options);
  REQUIRE(result.first_bad.size() == 1);
  CHECK(result.first_bad[0].key == "class2/cut.png");
  CHECK_THAT(result.first_bad[0].reason, Contains("truncated"));
}

TEST_CASE("a dry run says what would be written and writes nothing", "[convert]") {
  TemporaryFolder folder;
  PackOptions options = Options(MakeTree(folder), folder / "out");
  options.dry_run = true;
  options.shard_records = 8;
  const PackResult result = Convert(options);
  CHECK_FALSE(result.sealed);
  REQUIRE(result.manifest.shards.size() == 2);
  CHECK(result.manifest.shards[0].records == 8);
  CHECK_FALSE(fs::exists(folder / "out"));
}

TEST_CASE("an output inside its source is refused", "[convert]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  CHECK_THROWS_WITH(Convert(Options(tree, tree / "out")), Contains("lies inside the source"));
  CHECK_THROWS_WITH(Convert(Options(tree, tree)), Contains("lies inside the source"));
}
