#include <catch2/catch.hpp>

#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "tests/pack/made_tree.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

namespace {

// Twelve records in three shards.
Manifest Pack(const TemporaryFolder& folder) {
  PackOptions options = Options(MakeTree(folder), folder / "out");
  options.shard_records = 4;
  return Convert(options).manifest;
}

VerifyResult VerifyOut(const TemporaryFolder& folder, bool decode = false) {
  VerifyOptions options;
  options.decode = decode;
  options.threads = 2;
  return Verify(folder / "out", options);
}

}  // namespace

TEST_CASE("a good dataset has no fault", "[verify]") {
  TemporaryFolder folder;
  const Manifest manifest = Pack(folder);
  const VerifyResult result = VerifyOut(folder, true);
  CHECK(result.records == 12);
  CHECK(result.bytes == manifest.bytes_out);
  CHECK(result.faults.empty());
}

TEST_CASE("a changed payload is found with record and key", "[verify]") {
  TemporaryFolder folder;
  const Manifest manifest = Pack(folder);
  const RecordInfo info = Dataset::Open(folder / "out").Info(5);
  const fs::path shard = folder / "out" / manifest.shards[1].file;
  std::string bytes = ReadFile(shard);
  bytes[info.offset] ^= 1;
  WriteFile(shard, bytes);
  const VerifyResult result = VerifyOut(folder);
  CHECK(result.records == 11);
  bool named = false;
  for (const VerifyFault& fault : result.faults) {
    CHECK(fault.shard == manifest.shards[1].file);
    named |= fault.record == 1u && fault.key == std::string(Dataset::Open(folder / "out").Key(5));
  }
  CHECK(named);
}

TEST_CASE("a missing, a shortened and an exchanged shard are found", "[verify]") {
  TemporaryFolder folder;
  const Manifest manifest = Pack(folder);
  const fs::path first = folder / "out" / manifest.shards[0].file, last = folder / "out" / manifest.shards[2].file;
  std::string kind = "digest";
  SECTION("missing") {
    fs::remove(first);
    kind = "missing";
  }
  SECTION("shortened") {
    fs::resize_file(first, fs::file_size(first) - 1);
    kind = "size";
  }
  SECTION("exchanged") {
    const std::string a = ReadFile(first), b = ReadFile(last);
    WriteFile(first, b);
    WriteFile(last, a);
    kind = a.size() == b.size() ? "digest" : "size";
  }
  const VerifyResult result = VerifyOut(folder);
  REQUIRE_FALSE(result.faults.empty());
  CHECK(result.faults[0].shard == manifest.shards[0].file);
  CHECK(result.faults[0].kind == kind);
}

TEST_CASE("a manifest whose digest is not that of its records is found", "[verify]") {
  TemporaryFolder folder;
  Manifest manifest = Pack(folder);
  manifest.dataset_digest.low ^= 1;
  manifest.Commit(folder / "out");
  const VerifyResult result = VerifyOut(folder);
  REQUIRE(result.faults.size() == 1);
  CHECK(result.faults[0].kind == "manifest");
}

TEST_CASE("a file that is no shard is a fault, one that is not there an error", "[verify]") {
  TemporaryFolder folder;
  WriteFile(folder / "text.h5", "no shard");
  CHECK(Verify(folder / "text.h5", {}).faults.size() == 1);
  CHECK_THROWS_AS(Verify(folder / "nothing", {}), Error);
}
