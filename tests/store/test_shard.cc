#include <algorithm>
#include <catch2/catch.hpp>

#include "shardpack/error.h"
#include "shardpack/shard_reader.h"
#include "shardpack/shard_writer.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;

namespace {

std::string NumberedKey(std::size_t i) {
  std::string key("k");
  return key.append(std::to_string(i));
}

}  // namespace

TEST_CASE("every field of every record reads back as it was written", "[shard]") {
  const TempFolder folder;
  const ShardBuilder built = EverySection();
  const ShardSummary summary = built.Write(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  REQUIRE(shard.num_records() == 4);
  CHECK(shard.file_bytes() == summary.bytes);
  CHECK(shard.index_digest() == summary.index_digest);
  CHECK(shard.sync_marker() == 0x0123456789ABCDEF);
  CHECK(shard.class_names() == built.options.class_names);
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const TestRecord& wanted = built.records()[i];
    const RecordInfo info = shard.Info(i);
    CHECK(shard.Key(i) == wanted.key);
    CHECK(AsText(shard.Metadata(i)) == wanted.metadata);
    CHECK(std::ranges::equal(shard.SideData(i), wanted.side_data));
    CHECK(info.label == wanted.label);
    CHECK(info.width == wanted.width);
    CHECK(info.height == wanted.height);
    CHECK(info.channels == wanted.channels);
    CHECK(info.bit_depth == wanted.bit_depth);
    CHECK(info.encoding == wanted.encoding);
    CHECK(info.codec == wanted.codec);
    CHECK(info.orientation == wanted.orientation);
    CHECK(info.offset % 8 == 0);
    shard.Read(i, bytes);
    CHECK(bytes == wanted.raw);
  }
  CHECK(FaultsOf(folder / "a.shard").empty());
}

TEST_CASE("the file's digest is that of its bytes", "[shard]") {
  const TempFolder folder;
  const ShardSummary summary = EverySection().Write(folder / "a.shard");
  const std::vector<std::byte> bytes = ReadFile(folder / "a.shard");
  CHECK(summary.bytes == bytes.size());
  CHECK(summary.file_digest == Xxh3_128(bytes));
}

TEST_CASE("equal records give equal files", "[shard]") { CHECK(EverySection().Build() == EverySection().Build()); }

TEST_CASE("an empty shard opens, verifies and finds nothing", "[shard]") {
  const TempFolder folder;
  ShardBuilder().Write(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  CHECK(shard.num_records() == 0);
  CHECK(shard.class_names().empty());
  CHECK_FALSE(shard.Find("a"));
  CHECK(shard.NumClassmates(0) == 0);
  CHECK(FaultsOf(folder / "a.shard").empty());
}

TEST_CASE("records of every small size lie aligned and read back", "[shard]") {
  const TempFolder folder;
  ShardBuilder built;
  for (std::size_t size = 0; size < 40; ++size)
    built.Add({std::string(size % 11 + 1, 'k') + std::to_string(size), 0, Noise(size, size)});
  built.Write(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < 40; ++i) {
    shard.Read(i, bytes);
    CHECK(bytes == Noise(i, i));
  }
  CHECK(FaultsOf(folder / "a.shard").empty());
}

TEST_CASE("records larger than the write buffer go through whole", "[shard]") {
  const TempFolder folder;
  ShardBuilder built;
  for (const std::size_t size : {3000000, 5, 1048576, 1048575, 1}) built.Add({NumberedKey(size), 0, Noise(size, size)});
  const ShardSummary summary = built.Write(folder / "a.shard");
  CHECK(summary.file_digest == Xxh3_128(ReadFile(folder / "a.shard")));
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < built.records().size(); ++i) {
    shard.Read(i, bytes);
    CHECK(bytes == built.records()[i].raw);
  }
  CHECK(FaultsOf(folder / "a.shard").empty());
}

TEST_CASE("each key is found at its record, and no other key", "[shard]") {
  const TempFolder folder;
  ShardBuilder built;
  for (int i = 0; i < 3000; ++i) built.Add({"key/" + std::to_string(i * 7919 % 3000), i % 5, Noise(3, i)});
  built.Write(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  for (int i = 0; i < 3000; ++i) CHECK(shard.Find(built.records()[i].key) == static_cast<std::uint64_t>(i));
  for (const char* other : {"", "key/", "key/3000", "key/1x", "Key/1"}) CHECK_FALSE(shard.Find(other));
}

TEST_CASE("classmates are the records of a label in ascending order", "[shard]") {
  const TempFolder folder;
  ShardBuilder built;
  const std::vector<std::int64_t> labels = {3, -9, 3, INT64_MAX, INT64_MIN, 3, -9, 0};
  for (std::size_t i = 0; i < labels.size(); ++i) built.Add({NumberedKey(i), labels[i], Noise(2, i)});
  built.Write(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  CHECK(shard.NumClassmates(3) == 3);
  CHECK(shard.Classmate(3, 0) == 0);
  CHECK(shard.Classmate(3, 1) == 2);
  CHECK(shard.Classmate(3, 2) == 5);
  CHECK(shard.Classmate(-9, 1) == 6);
  CHECK(shard.Classmate(INT64_MIN, 0) == 4);
  CHECK(shard.Classmate(INT64_MAX, 0) == 3);
  CHECK(shard.NumClassmates(1) == 0);
  CHECK(FaultsOf(folder / "a.shard").empty());
}

namespace {

// Rows, lookup and classmates of two blocks, keys and metadata of more than one.
constexpr std::uint64_t kManyRecords = 70000;

std::string LongKey(std::uint64_t i) { return std::string("some/long/folder/name/key-").append(std::to_string(i)); }

void WriteManyRecords(const std::filesystem::path& path) {
  ShardWriter writer(path, {});
  for (std::uint64_t i = 0; i < kManyRecords; ++i) {
    const std::string key = LongKey(i), text = std::to_string(i * i);
    RecordToWrite record;
    record.info.label = static_cast<std::int64_t>(i % 40000);
    record.info.raw_bytes = static_cast<std::uint32_t>(text.size());
    record.info.stored_xxh3 = record.info.encoded_xxh3 = Xxh3_64(AsBytes(text));
    record.key = key;
    record.payload = AsBytes(text);
    record.metadata = AsBytes(key);
    writer.Append(record);
  }
  writer.Finish();
}

}  // namespace

TEST_CASE("an index of several blocks reads as one of a single block", "[shard]") {
  const TempFolder folder;
  WriteManyRecords(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  REQUIRE(shard.sections()[0].num_blocks == 2);
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < kManyRecords; i += 13) {
    shard.Read(i, bytes);
    REQUIRE(AsText(bytes) == std::to_string(i * i));
    REQUIRE(shard.Key(i) == LongKey(i));
    REQUIRE(AsText(shard.Metadata(i)) == LongKey(i));
    REQUIRE(shard.Find(LongKey(i)) == i);
  }
  CHECK(shard.Classmate(29999, 1) == 69999);
  CHECK(FaultsOf(folder / "a.shard").empty());
}

TEST_CASE("a damaged block of rows costs its own records and no other", "[shard]") {
  const TempFolder folder;
  WriteManyRecords(folder / "a.shard");
  BentShard bent(ReadFile(folder / "a.shard"));
  bent.bytes()[bent.SectionOffset(1) + 66000 * 64] ^= std::byte{1};
  WriteFile(folder / "a.shard", bent.bytes());
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  std::vector<std::byte> bytes;
  shard.Read(65535, bytes);
  CHECK(AsText(bytes) == "4294836225");
  CHECK_THROWS_WITH(shard.Read(65536, bytes), Catch::Contains("block 1 of section \"rows\""));
  std::uint64_t faults = 0, good = 0;
  shard.VerifyAll([&](const ShardReader::Fault&) { ++faults; }, [&](std::uint64_t, Bytes) { ++good; });
  CHECK(faults == 1);
  CHECK(good == 65536);
}

TEST_CASE("a record has the metadata it was given where others before and after have none", "[shard]") {
  const TempFolder folder;
  ShardBuilder built;
  for (int i = 0; i < 9; ++i) built.Add({NumberedKey(i), 0, Noise(1, i)});
  built.Add({"with", 0, Noise(1, 0), Codec::kStored, Encoding::kPng, 1, 1, 3, 8, 1, R"({"x":"y"})", {}});
  built.Add({"without", 0, Noise(1, 0)});
  built.Write(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  CHECK(shard.Metadata(0).empty());
  CHECK(AsText(shard.Metadata(9)) == R"({"x":"y"})");
  CHECK(shard.Metadata(10).empty());
  CHECK(shard.SideData(9).empty());
}

TEST_CASE("a reader may be moved", "[shard]") {
  const TempFolder folder;
  EverySection().Write(folder / "a.shard");
  ShardReader first = ShardReader::Open(folder / "a.shard");
  const ShardReader second = std::move(first);
  CHECK(second.Key(1) == "cat/2.png");
}

TEST_CASE("hints may be given for any record", "[shard]") {
  const TempFolder folder;
  EverySection().Write(folder / "a.shard");
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  for (std::uint64_t i = 0; i < shard.num_records(); ++i) shard.WillNeed(i);
}

TEST_CASE("an unfinished shard is removed", "[shard_writer]") {
  const TempFolder folder;
  {
    ShardWriter writer(folder / "a.shard", {});
    CHECK(std::filesystem::exists(folder / "a.shard"));
  }
  CHECK_FALSE(std::filesystem::exists(folder / "a.shard"));
}

TEST_CASE("the writer refuses what the format cannot hold", "[shard_writer]") {
  const TempFolder folder;
  const auto refused = [&](ShardBuilder shard) {
    try {
      shard.Write(folder / "a.shard");
    } catch (const Error& error) {
      CHECK_FALSE(std::filesystem::exists(folder / "a.shard"));
      return error.code() == ErrorCode::kInvalidArgument;
    }
    return false;
  };
  CHECK(refused(ShardBuilder().Add({std::string(65536, 'k'), 0, {}})));
  CHECK(refused(ShardBuilder().Add({"twice", 0, Noise(1, 1)}).Add({"twice", 0, Noise(1, 2)})));
  ShardBuilder longest;
  longest.Add({std::string(65535, 'k'), 0, Noise(1, 1)}).Write(folder / "b.shard");
  CHECK(ShardReader::Open(folder / "b.shard").Key(0) == std::string(65535, 'k'));
}

TEST_CASE("a writer that cannot write says so with the system's words", "[shard_writer]") {
  CHECK_THROWS_WITH(ShardWriter("/nonexistent-folder/a.shard", {}),
                    Catch::Contains("cannot create /nonexistent-folder/a.shard: No such file"));
  // A device that is always full.
  if (!std::filesystem::exists("/dev/full")) return;
  const TempFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "full");
  const auto fill = [&] { ShardBuilder().Add({"k", 0, Noise(2000000, 1)}).Write(folder / "full"); };
  CHECK_THROWS_WITH(fill(), Catch::Contains("No space left on device"));
}
