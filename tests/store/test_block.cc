// Blocks: tiny records that share a frame.
#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "libshard/store/content_counts.h"
#include "libshard/store/record_block.h"
#include "shardpack/error.h"
#include "shardpack/shard_reader.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;
using Catch::Contains;

namespace {

constexpr std::uint32_t kRows = 1;

// Records that are like one another in blocks of `per_block`.
ShardBuilder ManyInBlocks(std::size_t records, std::size_t per_block) {
  ShardBuilder shard;
  shard.options.sync_marker = 7;
  for (std::size_t i = 0; i < records; ++i) {
    TestRecord record;
    record.key = "k" + std::to_string(i);
    record.label = static_cast<std::int64_t>(i % 3);
    record.raw = ToBytes("the same beginning of all of them " + std::to_string(i * 7919));
    record.codec = Codec::kZstdBlock;
    record.encoding = Encoding::kPng;
    record.begins_block = i % per_block == 0;
    shard.Add(std::move(record));
  }
  return shard;
}

// The block that EveryFeature()'s records 4 to 6 are in, as content.
std::vector<std::byte> Content() {
  const TempFolder folder;
  WriteFile(folder / "a.shard", EveryFeatureBytes());
  const RecordInfo info = ShardReader::Open(folder / "a.shard").Info(4);
  std::vector<std::byte> content;
  REQUIRE(InflateBlock(Bytes(EveryFeatureBytes()).subspan(info.offset, info.stored_bytes), content));
  return content;
}

void Put32(std::vector<std::byte>& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes.at(at + i) = static_cast<std::byte>(value >> (8 * i));
}

// EveryFeature() with the block of records 4 to 6 exchanged for `content`, every checksum right.
std::string ReadFourOf(const std::vector<std::byte>& content, std::vector<std::string>& faults) {
  BentShard bent(EveryFeatureBytes());
  const std::uint64_t row = bent.SectionOffset(kRows) + 64 * 4;
  const std::uint64_t offset = bent.Get64(row);
  const std::uint32_t room = bent.Get32(row + 8);
  std::vector<std::byte> frame;
  const auto padded = [](std::size_t size) { return (size + 7) / 8 * 8; };
  for (int level = 1; level < 20 && padded(frame.size()) != padded(room); ++level)
    Compressor(level).Compress(content, frame);
  REQUIRE(padded(frame.size()) == padded(room));
  std::fill_n(bent.bytes().begin() + static_cast<std::ptrdiff_t>(offset), padded(room), std::byte{0});
  std::copy(frame.begin(), frame.end(), bent.bytes().begin() + static_cast<std::ptrdiff_t>(offset));
  for (std::uint64_t i = 4; i < 7; ++i) {
    bent.Set32(bent.SectionOffset(kRows) + 64 * i + 8, static_cast<std::uint32_t>(frame.size()));
    bent.Set64(bent.SectionOffset(kRows) + 64 * i + 40, Xxh3_64(frame));
  }
  bent.Set32(offset - 40 + 12, static_cast<std::uint32_t>(frame.size()));
  bent.Set32(offset - 40 + 24, static_cast<std::uint32_t>(Xxh3_64(frame)));
  bent.Set64(offset - 8, Xxh3_64(Bytes(bent.bytes()).subspan(offset - 40, 32)));
  const TempFolder folder;
  WriteFile(folder / "a.shard", bent.Reseal());
  faults = FaultsOf(folder / "a.shard");
  std::vector<std::byte> out;
  try {
    ShardReader::Open(folder / "a.shard").Read(4, out);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCorruption);
    return error.what();
  }
  return "read: " + std::string(AsText(out));
}

}  // namespace

TEST_CASE("records of blocks read in any order, and from many threads at once", "[block]") {
  const std::size_t per_block = GENERATE(1, 7, 100);
  const ShardBuilder truth = ManyInBlocks(100, per_block);
  const TempFolder folder;
  truth.Write(folder / "a.shard");
  CHECK(FaultsOf(folder / "a.shard").empty());
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::byte> bytes;
      for (std::size_t k = 0; k < 400; ++k) {
        const std::size_t i = k * (2 * t + 1) * 37 % 100;
        shard.Read(i, bytes);
        wrong[t] += bytes != truth.records()[i].raw;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>{0, 0, 0, 0});
}

TEST_CASE("records of two open shards at one place are not mixed up", "[block]") {
  const TempFolder folder;
  ShardBuilder other = ManyInBlocks(0, 1);
  const ShardBuilder one = ManyInBlocks(10, 10);
  for (TestRecord record : one.records()) {
    record.raw[0] = std::byte{'T'};
    other.Add(record);
  }
  one.Write(folder / "a.shard");
  other.Write(folder / "b.shard");
  const ShardReader a = ShardReader::Open(folder / "a.shard"), b = ShardReader::Open(folder / "b.shard");
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < 10; ++i) {
    a.Read(i, bytes);
    CHECK(AsText(bytes).starts_with("the same"));
    b.Read(i, bytes);
    CHECK(AsText(bytes).starts_with("The same"));
  }
}

TEST_CASE("rows of a block have the frame's place and hash and the record's own", "[block]") {
  const TempFolder folder;
  const ShardBuilder truth = ManyInBlocks(20, 10);
  truth.Write(folder / "a.shard");
  const std::vector<std::byte> file = ReadFile(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  for (std::uint64_t i = 0; i < 20; ++i) {
    const RecordInfo info = shard.Info(i);
    CHECK(info.codec == Codec::kZstdBlock);
    CHECK(info.offset == shard.Info(i / 10 * 10).offset);
    CHECK(info.stored_xxh3 == Xxh3_64(Bytes(file).subspan(info.offset, info.stored_bytes)));
    CHECK(info.raw_bytes == truth.records()[i].raw.size());
    CHECK(info.encoded_xxh3 == Xxh3_64(truth.records()[i].raw));
  }
}

TEST_CASE("a harmed frame spoils the records of its block only", "[block]") {
  const TempFolder folder;
  ManyInBlocks(30, 10).Write(folder / "a.shard");
  std::vector<std::byte> bytes = ReadFile(folder / "a.shard");
  bytes[ShardReader::Open(folder / "a.shard").Info(15).offset + 20] ^= std::byte{1};
  WriteFile(folder / "b.shard", bytes);
  std::vector<std::uint64_t> good;
  std::vector<std::optional<std::uint64_t>> bad;
  ShardReader::Open(folder / "b.shard")
      .VerifyAll([&](const ShardReader::Fault& fault) { bad.push_back(fault.record); },
                 [&](std::uint64_t i, Bytes) { good.push_back(i); });
  std::vector<std::uint64_t> want;
  for (std::uint64_t i = 0; i < 30; ++i) {
    if (i < 10 || i >= 20) want.push_back(i);
  }
  CHECK(good == want);
  REQUIRE(bad.size() == 10);
  for (std::uint64_t i = 0; i < 10; ++i) CHECK(bad[i] == 10 + i);
}

TEST_CASE("a position that leaves the block is refused", "[block]") {
  BentShard bent(EveryFeatureBytes());
  // Column 3 is the last of the columns: its section stands before the key lookup.
  const std::uint64_t positions = bent.SectionOffset(6) - 64;
  REQUIRE(bent.Get64(positions + 8 * 3) == 0);
  REQUIRE(bent.Get64(positions + 8 * 4) != 0);
  bent.Set64(positions + 8 * 4, GENERATE(std::uint64_t{1} << 63, 100000u, ~std::uint64_t{0}));
  const TempFolder folder;
  WriteFile(folder / "a.shard", bent.Reseal());
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  std::vector<std::byte> bytes;
  CHECK_THROWS_WITH(shard.Read(4, bytes), Contains("record 4") && Contains("leaves its block"));
  CHECK_FALSE(FaultsOf(folder / "a.shard").empty());
}

TEST_CASE("a position in a block of a record that is in none is a fault", "[block]") {
  BentShard bent(EveryFeatureBytes());
  bent.Set64(bent.SectionOffset(6) - 64 + 8 * 3, 5);
  const TempFolder folder;
  WriteFile(folder / "a.shard", bent.Reseal());
  const std::vector<std::string> faults = FaultsOf(folder / "a.shard");
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0], Contains("record 3") && Contains("in none"));
}

TEST_CASE("a codec of blocks in a shard without positions is refused", "[block]") {
  BentShard bent(EverySectionBytes());
  bent.Set8(bent.SectionOffset(kRows) + 64 + 35, 3);
  const TempFolder folder;
  WriteFile(folder / "a.shard", bent.Reseal());
  CHECK_THROWS_WITH(ShardReader::Open(folder / "a.shard").Info(1), Contains("no positions in blocks"));
}

TEST_CASE("a block whose table is not that of the index is a fault, and its records still read", "[block]") {
  std::vector<std::byte> content = Content();
  std::vector<std::string> faults;
  CHECK_THAT(ReadFourOf(content, faults), Contains("read: P6 2 3 255 the first"));
  CHECK(faults.empty());
  SECTION("label") { content[8 + 8] ^= std::byte{1}; }
  SECTION("encoding") { content[8 + 6] ^= std::byte{1}; }
  SECTION("key") { content[8 + 20] ^= std::byte{1}; }
  SECTION("number of records") { Put32(content, 0, 2); }
  SECTION("no record") { Put32(content, 0, 0); }
  SECTION("very many records") { Put32(content, 0, 0xFFFFFFFF); }
  SECTION("size of the table") { Put32(content, 4, 0xFFFFFFFF); }
  SECTION("size of a record") { Put32(content, 8, 0xFFFFFFFF); }
  SECTION("size of the metadata") { Put32(content, 8 + 16, 0xFFFFFFFF); }
  CHECK_THAT(ReadFourOf(content, faults), Contains("read: P6 2 3 255 the first"));
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0], Contains("record-header") && Contains("table of the block"));
}

TEST_CASE("a block is decoded only as a whole", "[block]") {
  const std::vector<std::byte> content = Content();
  REQUIRE(DecodeBlock(content));
  for (std::size_t size = 0; size < content.size(); ++size) CHECK_FALSE(DecodeBlock(Bytes(content).first(size)));
  std::vector<std::byte> longer = content;
  longer.push_back({});
  CHECK_FALSE(DecodeBlock(longer));
}

TEST_CASE("a frame that states more than any block has is refused before memory is asked for", "[block]") {
  std::vector<std::byte> zeros((16 << 20) + 1), frame, content;
  Compressor(1).Compress(zeros, frame);
  CHECK_FALSE(InflateBlock(frame, content));
  CHECK(content.capacity() == 0);
  zeros.pop_back();
  Compressor(1).Compress(zeros, frame);
  CHECK(InflateBlock(frame, content));
}

TEST_CASE("the writer refuses a frame that is not that of its records, and a block's record alone", "[block]") {
  const TempFolder folder;
  const std::vector<std::byte> raw = ToBytes("raw");
  RecordToWrite record;
  record.info.raw_bytes = 3;
  record.info.encoded_xxh3 = Xxh3_64(raw);
  record.info.codec = Codec::kZstdBlock;
  record.key = "a";
  record.payload = raw;
  std::vector<std::byte> frame;
  Compressor compressor(3);
  EncodeBlock(std::span(&record, 1), compressor, frame);
  ShardWriter writer(folder / "a.shard", {});
  RecordToWrite longer = record;
  longer.key = "ab";
  CHECK_THROWS_WITH(writer.AppendBlock(std::span(&longer, 1), frame), Contains("not that of its records"));
  CHECK_THROWS_WITH(writer.AppendBlock(std::span(&record, 1), raw), Contains("not that of its records"));
  CHECK_THROWS_WITH(writer.Append(record), Contains("on its own"));
  writer.AppendBlock(std::span(&record, 1), frame);
  writer.Finish();
  CHECK(FaultsOf(folder / "a.shard").empty());
}

TEST_CASE("the counts of a shard have each block's frame once", "[block]") {
  const TempFolder folder;
  const ShardBuilder truth = EveryFeature();
  truth.Write(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  ContentCounts counts;
  counts.Add(shard);
  Manifest manifest;
  manifest.classes = truth.options.class_names;
  counts.Finish(manifest);
  CHECK(manifest.encodings == std::map<std::string, std::uint64_t>{
                                  {"bmp", 1}, {"gif", 1}, {"jpeg", 1}, {"pixels", 1}, {"png", 2}, {"pnm", 2}});
  CHECK(manifest.codecs.at("zstd-block").records == 4);
  CHECK(manifest.codecs.at("zstd-block").raw_bytes == 31 + 32 + 0 + 18);
  CHECK(manifest.codecs.at("zstd-block").stored_bytes == shard.Info(4).stored_bytes + shard.Info(7).stored_bytes);
  CHECK(manifest.codecs.at("stored").stored_bytes == 37);
  CHECK(manifest.widths == Histogram{{1, 1}, {2, 4}, {5, 1}, {7, 1}, {40, 1}});
  CHECK(manifest.heights == Histogram{{1, 1}, {3, 4}, {5, 1}, {9, 1}, {30, 1}});
  DatasetDigester digester;
  for (const TestRecord& record : truth.records())
    digester.Add(record.key, record.label, AsBytes(record.metadata), record.encoding, Xxh3_64(record.raw));
  CHECK(manifest.dataset_digest == digester.Finish(manifest.classes));
}
