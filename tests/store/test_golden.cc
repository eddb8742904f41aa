// Shards written by released versions stay readable, and equal input gives the bytes it gave then.
#include <algorithm>
#include <catch2/catch.hpp>

#include "shardpack/shard_reader.h"
#include "shardpack/shard_writer.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;

namespace {

const std::filesystem::path kGolden = std::filesystem::path(SHARDPACK_TEST_DATA) / "record_shard_v1.shard";
const std::filesystem::path kGoldenBlocks = std::filesystem::path(SHARDPACK_TEST_DATA) / "record_shard_v1_blocks.shard";

void CheckHolds(const std::filesystem::path& path, const ShardBuilder& truth) {
  const ShardReader shard = ShardReader::Open(path);
  REQUIRE(shard.num_records() == truth.records().size());
  CHECK(shard.format_version() == 1);
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < shard.num_records(); ++i) {
    const TestRecord& record = truth.records()[i];
    shard.Read(i, bytes);
    CHECK(bytes == record.raw);
    CHECK(shard.Key(i) == record.key);
    CHECK(AsText(shard.Metadata(i)) == record.metadata);
    CHECK(std::ranges::equal(shard.SideData(i), record.side_data));
    CHECK(shard.Find(record.key) == i);
    CHECK(shard.Info(i).codec == record.codec);
  }
  CHECK(FaultsOf(path).empty());
}

}  // namespace

TEST_CASE("the golden shard of an earlier writer reads as it was packed", "[golden]") {
  CheckHolds(kGolden, EverySection());
}

TEST_CASE("the golden shard with blocks reads as it was packed", "[golden]") {
  CheckHolds(kGoldenBlocks, EveryFeature());
}

TEST_CASE("the payloads of the golden shard with blocks are written to its very bytes", "[golden]") {
  // From the stored payloads, so that it holds for any version of zstd.
  const std::vector<std::byte> golden = ReadFile(kGoldenBlocks);
  const ShardReader shard = ShardReader::Open(kGoldenBlocks);
  const auto record = [&](std::uint64_t i) {
    const RecordInfo info = shard.Info(i);
    return RecordToWrite{info, shard.Key(i), Bytes(golden).subspan(info.offset, info.stored_bytes), shard.Metadata(i),
                         shard.SideData(i)};
  };
  const TempFolder folder;
  ShardWriter writer(folder / "a.shard", EveryFeature().options);
  for (std::uint64_t i = 0; i < 4; ++i) writer.Append(record(i));
  writer.AppendBlock(std::vector{record(4), record(5), record(6)}, record(4).payload);
  writer.AppendBlock(std::vector{record(7)}, record(7).payload);
  const ShardSummary summary = writer.Finish();
  CHECK(ReadFile(folder / "a.shard") == golden);
  CHECK(summary.file_digest.Hex() == "287ebd185fbadf319b1d09b6ff3c8ec4");    // of the second reader
  CHECK(summary.index_digest.Hex() == "97cec1f339e72d412dc194a9a9a1dfa5");  // likewise
}
