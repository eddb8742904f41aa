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

}  // namespace

TEST_CASE("the golden shard of version 1 reads as it was packed", "[golden]") {
  const ShardReader shard = ShardReader::Open(kGolden);
  const ShardBuilder truth = EverySection();
  REQUIRE(shard.num_records() == 4);
  CHECK(shard.format_version() == 1);
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const TestRecord& record = truth.records()[i];
    shard.Read(i, bytes);
    CHECK(bytes == record.raw);
    CHECK(shard.Key(i) == record.key);
    CHECK(AsText(shard.Metadata(i)) == record.metadata);
    CHECK(std::ranges::equal(shard.SideData(i), record.side_data));
    CHECK(shard.Find(record.key) == i);
  }
  CHECK(FaultsOf(kGolden).empty());
}

TEST_CASE("the payloads of the golden shard are written to its very bytes", "[golden]") {
  // From the stored payloads, so that it holds for any version of zstd.
  const std::vector<std::byte> golden = ReadFile(kGolden);
  const ShardReader shard = ShardReader::Open(kGolden);
  const TempFolder folder;
  ShardWriter writer(folder / "a.shard", EverySection().options);
  for (std::uint64_t i = 0; i < shard.num_records(); ++i) {
    const RecordInfo info = shard.Info(i);
    writer.Append({info, shard.Key(i), Bytes(golden).subspan(info.offset, info.stored_bytes), shard.Metadata(i),
                   shard.SideData(i)});
  }
  const ShardSummary summary = writer.Finish();
  CHECK(ReadFile(folder / "a.shard") == golden);
  CHECK(summary.file_digest.Hex() == "c4f1ba9bb3c89274e23b4dc7cb445541");   // of the second reader
  CHECK(summary.index_digest.Hex() == "42058b90c5d446d59ffc302008c93f5e");  // likewise
}
