#include <sys/file.h>

#include <catch2/catch.hpp>

#include "libshard/pack/output_folder.h"
#include "libshard/pack/work_folder.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "tests/pack/made_tree.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

TEST_CASE("shards are named by number and content", "[output]") {
  CHECK(ShardFileName(12, Digest128{0x5f3a9c0100000000, 1}) == "shard-00012-5f3a9c01.shard");
  CHECK(IsShardFileName("shard-00012-5f3a9c01.shard"));
  CHECK(IsShardFileName("shard-123456-5f3a9c01.h5"));
  for (const char* name : {"shard-00012.shard", "shard-0001x-5f3a9c01.shard", "shard-00012-5F3A9C01.shard",
                           "my-shard-00012-5f3a9c01.shard", "dataset.json"}) {
    CHECK_FALSE(IsShardFileName(name));
  }
}

TEST_CASE("the same request again touches nothing", "[output]") {
  TemporaryFolder folder;
  const PackOptions options = Options(MakeTree(folder), folder / "out");
  Convert(options);
  const auto before = FilesOf(folder / "out");
  const auto time = fs::last_write_time(folder / "out" / kManifestName);
  const PackResult again = Convert(options);
  CHECK(again.already_complete);
  CHECK(again.manifest.records == 12);
  CHECK(FilesOf(folder / "out") == before);
  CHECK(fs::last_write_time(folder / "out" / kManifestName) == time);
}

TEST_CASE("shards that lost their manifest are not removed", "[output]") {
  TemporaryFolder folder;
  PackOptions options = Options(MakeTree(folder), folder / "out");
  Convert(options);
  fs::remove(folder / "out" / kManifestName);
  const auto before = FilesOf(folder / "out");
  REQUIRE(before.size() == 1);
  options.overwrite = GENERATE(false, true);
  CHECK_THROWS_WITH(Convert(options), Contains("holds shards but no dataset.json (" + before.begin()->first));
  CHECK_THROWS_WITH(Status(folder / "out"), Contains("holds shards but no dataset.json"));
  CHECK(FilesOf(folder / "out") == before);
}

TEST_CASE("another request is refused with the difference named", "[output]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  PackOptions options = Options(tree, folder / "out");
  Convert(options);
  const auto before = FilesOf(folder / "out");
  SECTION("an option") {
    options.shard_records = 3;
    CHECK_THROWS_WITH(Convert(options), Contains("shard-records was not given and is 3 now"));
  }
  SECTION("another value") {
    options.shard_bytes = 1000;
    CHECK_THROWS_WITH(Convert(options), Contains("shard-size was 268435456 and is 1000 now"));
  }
  SECTION("an input") {
    WriteFile(tree / "class0/new.png", Png(3, 3, 3));
    CHECK_THROWS_WITH(Convert(options), Contains("the inputs differ"));
  }
  CHECK(FilesOf(folder / "out") == before);
}

TEST_CASE("overwriting replaces the dataset and removes its shards", "[output]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  PackOptions options = Options(tree, folder / "out");
  options.shard_records = 4;
  Convert(options);
  WriteFile(tree / "class0/new.png", Png(3, 3, 3));
  options.shard_records = 100;
  options.overwrite = true;
  Convert(options);
  CHECK(Dataset::Open(folder / "out").size() == 13);
  CHECK(FilesOf(folder / "out").size() == 2);
}

TEST_CASE("an overwrite that fails or is interrupted leaves the old dataset whole and goes on from there", "[output]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  PackOptions options = Options(tree, folder / "out");
  Convert(options);
  const auto before = FilesOf(folder / "out");
  options.overwrite = true;
  options.shard_records = 2;
  std::atomic<bool> stop{false};
  options.stop = &stop;
  SECTION("a bad input at the end") {
    WriteFile(tree / "class2/zzz.png", "");
    options.on_error = OnError::kFail;
    CHECK_THROWS_AS(Convert(options), Error);
    options.on_error = OnError::kSkip;
  }
  SECTION("stopped before packing") {
    options.progress = [&](const PackProgress& p) { stop = p.stage == "packing"; };
    CHECK_THROWS_AS(Convert(options), Interrupted);
  }
  SECTION("stopped when all shards are made") {
    options.progress = [&](const PackProgress& p) { stop = p.stage == "sealing"; };
    CHECK_THROWS_AS(Convert(options), Interrupted);
  }
  const auto after = FilesOf(folder / "out");
  for (const auto& [name, content] : before) CHECK(after.at(name) == content);
  CHECK(Verify(folder / "out", {}).faults.empty());
  options.progress = nullptr;
  options.stop = nullptr;
  const PackResult again = Convert(options);
  CHECK(again.resumed);
  options.output = folder / "undisturbed";
  Convert(options);
  CHECK(FilesOf(folder / "out") == FilesOf(folder / "undisturbed"));
}

TEST_CASE("what a killed run left is removed by the next", "[output]") {
  TemporaryFolder folder;
  const PackOptions options = Options(MakeTree(folder), folder / "out");
  WriteFile(folder / "out" / "shard-00000-00000000.shard", "left");
  WriteFile(folder / "out" / kWorkFolder / "shard-0.partial", "left");
  Convert(options);
  CHECK(FilesOf(folder / "out").size() == 2);
  WriteFile(folder / "out" / "shard-00000-00000000.shard", "left");
  CHECK(Convert(options).already_complete);
  CHECK(FilesOf(folder / "out").size() == 2);
}

TEST_CASE("a folder with other files is refused, an empty one is not", "[output]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  fs::create_directories(folder / "out");
  CHECK(Convert(Options(tree, folder / "out")).sealed);
  WriteFile(folder / "other" / "thesis.txt", "x");
  PackOptions options = Options(tree, folder / "other");
  options.overwrite = true;
  CHECK_THROWS_WITH(Convert(options), Contains("thesis.txt"));
}

TEST_CASE("a dataset that lost a shard is not called complete", "[output]") {
  TemporaryFolder folder;
  PackOptions options = Options(MakeTree(folder), folder / "out");
  const Manifest manifest = Convert(options).manifest;
  fs::remove(folder / "out" / manifest.shards[0].file);
  CHECK_THROWS_WITH(Convert(options), Contains("damaged") && Contains("missing"));
  options.overwrite = true;
  CHECK(Convert(options).manifest.shards[0].digest == manifest.shards[0].digest);
}

TEST_CASE("a second process on the same output is refused", "[output]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder);
  {
    const WorkFolder held(folder / "out");
    try {
      Convert(Options(tree, folder / "out"));
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kIo);
      CHECK_THAT(error.what(), Contains("another process"));
    }
  }
  CHECK(Convert(Options(tree, folder / "out")).sealed);
}

TEST_CASE("nothing behind a link is ever written or removed", "[output]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder), out = folder / "out";
  WriteFile(folder / "precious" / "file", "precious");
  WriteFile(folder / "precious" / "shard-0.partial", "precious");
  fs::create_directories(out);

  SECTION("the work folder is a link") {
    fs::create_directory_symlink(folder / "precious", out / ".shardpack");
    CHECK_THROWS_WITH(Convert(Options(tree, out)), Contains("is a link"));
    CHECK(fs::is_symlink(out / ".shardpack"));
  }
  SECTION("the lock is a link") {
    fs::create_directory(out / ".shardpack");
    fs::create_symlink(folder / "precious" / "new", out / ".shardpack" / "lock");
    CHECK_THROWS_AS(Convert(Options(tree, out)), Error);
  }
  SECTION("an unfinished shard and an unfinished ledger are links") {
    fs::create_directory(out / ".shardpack");
    fs::create_symlink(folder / "precious" / "file", out / ".shardpack" / "shard-0.partial");
    fs::create_symlink(folder / "precious" / "file", out / "bad_inputs.jsonl.partial");
    WriteFile(tree / "class0" / "bad.png", "no picture");
    CHECK(Convert(Options(tree, out)).manifest.bad_inputs == 1);
    CHECK(Verify(out, {}).faults.empty());
  }
  CHECK(FilesOf(folder / "precious") ==
        std::map<std::string, std::string>{{"file", "precious"}, {"shard-0.partial", "precious"}});
}

TEST_CASE("only our own files are removed from a work folder", "[output]") {
  TemporaryFolder folder;
  const fs::path tree = MakeTree(folder), out = folder / "out";
  WriteFile(out / ".shardpack" / "shard-3.partial", "unfinished");
  WriteFile(out / ".shardpack" / "notes.txt", "precious");
  WriteFile(out / ".shardpack" / "deep" / "shard-0.partial", "precious");
  Convert(Options(tree, out));
  CHECK(FilesOf(out / ".shardpack") ==
        std::map<std::string, std::string>{{"deep", "(not a file)"}, {"notes.txt", "precious"}});
  CHECK(ReadFile(out / ".shardpack" / "deep" / "shard-0.partial") == "precious");
}
