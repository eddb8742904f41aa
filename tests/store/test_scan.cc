// Records found by their headers alone.
#include <algorithm>
#include <catch2/catch.hpp>

#include "libshard/store/record_block.h"
#include "libshard/store/record_scan.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;

namespace {

constexpr std::uint64_t kMarker = 0x0123456789ABCDEF;  // of EverySection() and EveryFeature()

std::vector<ScannedRecord> Scan(Bytes file, std::uint64_t marker = kMarker) {
  std::vector<ScannedRecord> found;
  RecordScan scan(file, marker);
  while (const std::optional<ScannedRecord> record = scan.Next()) found.push_back(*record);
  return found;
}

std::vector<std::uint32_t> NumbersOf(const std::vector<ScannedRecord>& found, bool good = true) {
  std::vector<std::uint32_t> numbers;
  for (const ScannedRecord& record : found) {
    if (record.payload_good == good) numbers.push_back(record.header.record);
  }
  return numbers;
}

using Numbers = std::vector<std::uint32_t>;

// Where the header of record `i` of EveryFeature() begins.
std::uint64_t HeaderOf(std::uint32_t i) {
  for (const ScannedRecord& record : Scan(EveryFeatureBytes())) {
    if (record.header.record == i) return record.offset;
  }
  FAIL("no record " << i);
  return 0;
}

}  // namespace

TEST_CASE("a scan finds the dictionary, each record and each block of a whole shard", "[scan]") {
  const std::vector<ScannedRecord> found = Scan(EveryFeatureBytes());
  const ShardBuilder truth = EveryFeature();
  REQUIRE(NumbersOf(found) == Numbers{kDictionaryRecord, 0, 1, 2, 3, 4, 7});
  CHECK(NumbersOf(found, false).empty());
  CHECK(std::ranges::equal(found[0].payload, truth.options.dictionary));
  for (std::size_t i = 0; i < 4; ++i) {
    const TestRecord& record = truth.records()[i];
    const RecordHeader& header = found[i + 1].header;
    CHECK(header.key == record.key);
    CHECK(header.label == record.label);
    CHECK(header.metadata == record.metadata);
    CHECK(header.encoding == static_cast<std::uint8_t>(record.encoding));
    CHECK(header.codec == static_cast<std::uint8_t>(record.codec));
  }
  CHECK(std::ranges::equal(found[1].payload, truth.records()[0].raw));
}

TEST_CASE("the table of a found block names its records", "[scan]") {
  const std::vector<ScannedRecord> found = Scan(EveryFeatureBytes());
  const ShardBuilder truth = EveryFeature();
  std::vector<std::byte> content;
  REQUIRE(InflateBlock(found[5].payload, content));
  const auto entries = DecodeBlock(content);
  REQUIRE(entries);
  REQUIRE(entries->size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const TestRecord& record = truth.records()[4 + i];
    const BlockEntry& entry = (*entries)[i];
    CHECK(entry.key == record.key);
    CHECK(entry.metadata == record.metadata);
    CHECK(entry.label == record.label);
    CHECK(entry.encoding == static_cast<std::uint8_t>(record.encoding));
    CHECK(std::ranges::equal(Bytes(content).subspan(entry.position, entry.raw_bytes), record.raw));
  }
}

TEST_CASE("a scan passes a hole and names the record with the harmed payload", "[scan]") {
  std::vector<std::byte> bytes = EveryFeatureBytes();
  SECTION("in a payload") {
    bytes[HeaderOf(2) + 64] ^= std::byte{1};
    const std::vector<ScannedRecord> found = Scan(bytes);
    CHECK(NumbersOf(found) == Numbers{kDictionaryRecord, 0, 1, 3, 4, 7});
    CHECK(NumbersOf(found, false) == Numbers{2});
  }
  SECTION("in a header") {
    bytes[HeaderOf(2) + 33] ^= std::byte{1};
    const std::vector<ScannedRecord> found = Scan(bytes);
    CHECK(NumbersOf(found) == Numbers{kDictionaryRecord, 0, 1, 3, 4, 7});
    CHECK(NumbersOf(found, false).empty());
  }
  SECTION("over several records") {
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(HeaderOf(1)) + 8,
              bytes.begin() + static_cast<std::ptrdiff_t>(HeaderOf(3)) + 8, std::byte{0});
    CHECK(NumbersOf(Scan(bytes)) == Numbers{kDictionaryRecord, 0, 4, 7});
  }
}

TEST_CASE("a scan finds what follows bytes that were cut out, at any place", "[scan]") {
  for (const std::size_t cut : {1, 5, 8, 13}) {
    std::vector<std::byte> bytes = EveryFeatureBytes();
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(HeaderOf(0) + 60);  // inside the payload of record 0
    bytes.erase(at, at + static_cast<std::ptrdiff_t>(cut));
    const std::vector<ScannedRecord> found = Scan(bytes);
    CHECK(NumbersOf(found) == Numbers{kDictionaryRecord, 1, 2, 3, 4, 7});
    CHECK(NumbersOf(found, false) == Numbers{0});
  }
}

TEST_CASE("a scan of a shard cut at any length finds the records before the cut", "[scan]") {
  const std::vector<std::byte>& whole = EveryFeatureBytes();
  const std::vector<ScannedRecord> all = Scan(whole);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut = Bytes(whole).first(size);
    std::size_t complete = 0;
    while (complete < all.size() && all[complete].payload_offset + all[complete].payload.size() <= size) ++complete;
    if (NumbersOf(Scan(cut)).size() != complete) FAIL("cut at " << size);
  }
}

TEST_CASE("a shard inside a payload is no part of the shard, unless the payload is harmed", "[scan]") {
  ShardBuilder outer;
  outer.options.sync_marker = kMarker;
  outer.Add({"a", 0, EverySectionBytes(), Codec::kStored});
  outer.Add({"b", 0, Noise(9, 1), Codec::kStored});
  const std::vector<std::byte> bytes = outer.Build();
  const std::vector<ScannedRecord> found = Scan(bytes);
  REQUIRE(NumbersOf(found) == Numbers{0, 1});
  CHECK(found[0].header.key == "a");
  CHECK(FindSyncMarker(bytes) == kMarker);
}

TEST_CASE("the sync marker is that of the header, else of the footer, else of the records", "[scan]") {
  std::vector<std::byte> bytes = EveryFeatureBytes();
  CHECK(FindSyncMarker(bytes) == kMarker);
  bytes[3] ^= std::byte{1};
  CHECK(FindSyncMarker(bytes) == kMarker);
  bytes.resize(bytes.size() - 100);
  CHECK(FindSyncMarker(bytes) == kMarker);
  // The first record header has another marker under a right checksum; the others outvote it.
  const std::uint64_t first = HeaderOf(kDictionaryRecord);
  bytes[first] ^= std::byte{1};
  const std::uint64_t sum = Xxh3_64(Bytes(bytes).subspan(first, 32));
  for (int i = 0; i < 8; ++i) bytes[first + 32 + static_cast<std::size_t>(i)] = static_cast<std::byte>(sum >> (8 * i));
  CHECK(FindSyncMarker(bytes) == kMarker);
  CHECK_FALSE(FindSyncMarker(Noise(5000, 1)).has_value());
  CHECK_FALSE(FindSyncMarker({}).has_value());
}

TEST_CASE("the copy of the dictionary is found where it is whole", "[scan]") {
  std::vector<std::byte> bytes = EveryFeatureBytes();
  CHECK(std::ranges::equal(FindDictionary(bytes, kMarker), EveryFeature().options.dictionary));
  bytes[HeaderOf(kDictionaryRecord) + 50] ^= std::byte{1};
  CHECK(FindDictionary(bytes, kMarker).empty());
  CHECK(FindDictionary(Noise(1000, 2), kMarker).empty());
}

TEST_CASE("no flipped byte of the payload region is found as a good record with other content", "[scan]") {
  const std::vector<std::byte> good = EveryFeatureBytes();
  const std::vector<ScannedRecord> truth = Scan(good);
  std::vector<std::byte> bytes = good;
  for (std::size_t at = kHeaderBytes; at < 4096; ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      bytes[at] = good[at] ^ static_cast<std::byte>(flip);
      for (const ScannedRecord& record : Scan(bytes)) {
        const auto same = std::find_if(truth.begin(), truth.end(), [&](const ScannedRecord& other) {
          return other.header == record.header && std::ranges::equal(other.payload, record.payload);
        });
        if (record.payload_good && same == truth.end()) FAIL("byte " << at);
      }
    }
    bytes[at] = good[at];
  }
}

TEST_CASE("the longest keys and metadata longer than any buffer come back from the record headers", "[scan]") {
  ShardBuilder built;
  built.options.sync_marker = kMarker;
  std::string long_key(65535, 'k'), metadata = "{\"a\":\"" + std::string(3 << 20, 'm') + "\"}";
  built.Add({long_key, 1, Noise(9, 1), Codec::kStored, Encoding::kPng, 1, 1, 3, 8, 1, metadata, {}});
  built.Add({"short", 2, Noise(9, 2), Codec::kStored, Encoding::kPng, 1, 1, 3, 8, 1, "{}", {}});
  const TempFolder folder;
  built.Write(folder / "a.shard");
  CHECK(FaultsOf(folder / "a.shard").empty());
  const std::vector<std::byte> bytes = ReadFile(folder / "a.shard");
  const std::vector<ScannedRecord> found = Scan(bytes);
  REQUIRE(NumbersOf(found) == Numbers{0, 1});
  CHECK(found[0].header.key == long_key);
  CHECK(found[0].header.metadata == metadata);
  CHECK(found[1].header.metadata == "{}");
}

TEST_CASE("a scan for a marker of zeros passes zeros", "[scan]") {
  ShardBuilder built;
  built.Add({"a", 1, Noise(9, 1), Codec::kStored});
  std::vector<std::byte> bytes = built.Build();
  bytes.insert(bytes.begin() + 64, 100000, std::byte{0});
  CHECK(NumbersOf(Scan(bytes, 0)) == Numbers{0});
}
