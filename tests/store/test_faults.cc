// Each fault the format allows, under right checksums: a hostile or broken writer rather than a bad disk.
#include <catch2/catch.hpp>

#include "shardpack/error.h"
#include "shardpack/shard_reader.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;
using Catch::Contains;

namespace {

constexpr std::uint32_t kRows = 1, kColumn = 2, kMetadata = 4, kLookup = 6, kLabels = 7, kClassmates = 8,
                        kDictionary = 9, kClassNames = 11;

class Bench {
 public:
  BentShard bent{EverySectionBytes()};

  std::uint64_t row(int i) const { return bent.SectionOffset(kRows) + 64 * i; }
  std::filesystem::path Save() {
    WriteFile(folder_ / "a.shard", bent.Reseal());
    return folder_ / "a.shard";
  }
  ShardReader Open() { return ShardReader::Open(Save()); }
  // The message and code of what `use` throws on the opened shard.
  template <typename Use>
  std::string Thrown(ErrorCode code, Use use) {
    try {
      use(Open());
    } catch (const Error& error) {
      CHECK(error.code() == code);
      return error.what();
    }
    return "nothing thrown";
  }
  std::string OpenThrows(ErrorCode code = ErrorCode::kCorruption) {
    return Thrown(code, [](const ShardReader&) {});
  }
  std::string InfoThrows(ErrorCode code = ErrorCode::kCorruption) {
    return Thrown(code, [](const ShardReader& shard) { shard.Info(1); });
  }
  std::string Faults() {
    std::string all;
    for (const std::string& fault : FaultsOf(Save())) all += fault + "\n";
    return all;
  }

 private:
  TempFolder folder_;
};

std::string OpenThrows(Bytes bytes) {
  const TempFolder folder;
  WriteFile(folder / "x.shard", bytes);
  try {
    ShardReader::Open(folder / "x.shard");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCorruption);
    CHECK(error.where().path == (folder / "x.shard").string());
    return error.reason();
  }
  return "nothing thrown";
}

}  // namespace

TEST_CASE("a shard bent in no way opens and has no fault", "[faults]") {
  Bench bench;
  CHECK(bench.Open().num_records() == 4);
  CHECK(bench.Faults().empty());
}

TEST_CASE("what is no shard is said to be none", "[faults]") {
  CHECK_THAT(OpenThrows({}), Contains("empty"));
  CHECK_THAT(OpenThrows(AsBytes("hello, world\n")), Contains("not a shardpack shard"));
  CHECK_THAT(OpenThrows(AsBytes(std::string("\x89HDF\r\n\x1A\n") + std::string(100, '\0'))),
             Contains("not a shardpack shard") && Contains("HDF5"));
  CHECK_THAT(OpenThrows(AsBytes(std::string("\xFF\xD8\xFF\xE0") + std::string(100, 'x'))),
             Contains("not a shardpack shard") && Contains("JPEG"));
  CHECK_THAT(OpenThrows(std::vector<std::byte>(5000)), Contains("not a shardpack shard"));
  CHECK_THAT(OpenThrows(Noise(5000, 1)), Contains("not a shardpack shard"));
  CHECK_THAT(OpenThrows(AsBytes("\x89SHPK")), Contains("truncated"));
}

TEST_CASE("a missing file and a folder are no shards", "[faults]") {
  const TempFolder folder;
  try {
    ShardReader::Open(folder / "none");
    FAIL("opened");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kNotFound);
  }
  CHECK_THROWS_WITH(ShardReader::Open(folder.path()), Contains("not a regular file"));
}

TEST_CASE("a newer version and unknown flags are refused as unsupported", "[faults]") {
  SECTION("header version") {
    Bench bench;
    bench.bent.Set16(8, 2);
    CHECK_THAT(bench.OpenThrows(ErrorCode::kUnsupported), Contains("version 2 is newer"));
  }
  SECTION("footer version") {
    Bench bench;
    bench.bent.Set16(bench.bent.footer_offset() + 8, 2);
    CHECK_THAT(bench.OpenThrows(ErrorCode::kUnsupported), Contains("version 2 is newer"));
  }
  SECTION("a flag that must be known") {
    Bench bench;
    bench.bent.Set32(12, 0x8000);
    CHECK_THAT(bench.OpenThrows(ErrorCode::kUnsupported), Contains("flags"));
  }
  SECTION("a flag that may be ignored") {
    Bench bench;
    bench.bent.Set32(12, 0x10000);
    CHECK(bench.Open().num_records() == 4);
  }
  SECTION("a section's flag") {
    Bench bench;
    bench.bent.Set32(bench.bent.SectionEntryOffset(kRows) + 4, 3);
    CHECK_THAT(bench.OpenThrows(ErrorCode::kUnsupported), Contains("flags"));
  }
  SECTION("a record's flag") {
    Bench bench;
    bench.bent.Set32(bench.row(1) + 36, 0x11);
    CHECK_THAT(bench.InfoThrows(ErrorCode::kUnsupported), Contains("record 1"));
  }
  SECTION("encoding and codec") {
    Bench bench;
    bench.bent.Set8(bench.row(1) + 34, 200);
    CHECK_THAT(bench.InfoThrows(ErrorCode::kUnsupported), Contains("record 1"));
    bench.bent.Set8(bench.row(1) + 34, 1);
    bench.bent.Set8(bench.row(1) + 35, 4);
    CHECK_THAT(bench.InfoThrows(ErrorCode::kUnsupported), Contains("codec"));
  }
}

TEST_CASE("an unknown section is ignored or refused as its flag says", "[faults]") {
  Bench bench;
  const std::uint64_t entry = bench.bent.SectionEntryOffset(kClassNames);
  bench.bent.Set32(entry, 77);
  const ShardReader shard = bench.Open();
  CHECK(shard.class_names().empty());
  CHECK(shard.sections().back().name == "section 77");
  CHECK(bench.Faults().empty());
  bench.bent.Set32(entry + 4, 1);
  CHECK_THAT(bench.OpenThrows(ErrorCode::kUnsupported), Contains("section 77"));
}

TEST_CASE("damage in an unknown section is still found", "[faults]") {
  Bench bench;
  bench.bent.Set32(bench.bent.SectionEntryOffset(kClassNames), 77);
  const std::filesystem::path path = bench.Save();
  std::vector<std::byte> bytes = ReadFile(path);
  bytes[bench.bent.SectionOffset(77)] ^= std::byte{1};
  WriteFile(path, bytes);
  REQUIRE(FaultsOf(path).size() == 1);
  CHECK_THAT(FaultsOf(path)[0], Contains("section 77"));
}

TEST_CASE("rows that point elsewhere are refused before use", "[faults]") {
  Bench bench;
  const std::uint64_t row = bench.row(1);
  SECTION("payload beyond the payloads") { bench.bent.Set64(row, bench.bent.SectionOffset(kRows)); }
  SECTION("payload offset that wraps") { bench.bent.Set64(row, ~std::uint64_t{7}); }
  SECTION("payload before the first record") { bench.bent.Set64(row, 64); }
  SECTION("payload not aligned") { bench.bent.Set64(row, bench.bent.Get64(row) + 1); }
  SECTION("stored size too large") { bench.bent.Set32(row + 8, 0xFFFFFFFF); }
  SECTION("raw size no compression gives") { bench.bent.Set32(row + 12, 0xFFFFFFFF); }
  SECTION("orientation 0") { bench.bent.Set32(row + 36, 0); }
  SECTION("orientation 9") { bench.bent.Set32(row + 36, 9); }
  SECTION("key beyond its heap") { bench.bent.Set64(row + 56, std::uint64_t{1} << 40 << 16 | 5); }
  SECTION("key longer than its heap") { bench.bent.Set64(row + 56, bench.bent.Get64(row + 56) | 0xFFFF); }
  SECTION("raw size of a stored record") { bench.bent.Set32(bench.row(0) + 12, 36); }
  SECTION("hash of a stored record") { bench.bent.Set64(bench.row(0) + 48, 36); }
  SECTION("a dictionary codec without a dictionary") {
    bench.bent.Set32(bench.bent.SectionEntryOffset(kDictionary), 77),
        bench.bent.Set32(bench.bent.SectionEntryOffset(77) + 4, 0);
  }
  const std::string what = bench.InfoThrows();
  CHECK_THAT(what, Contains("record ") && Contains("at byte "));
  CHECK_THAT(bench.Faults(), Contains("checksum: "));
}

TEST_CASE("a payload that does not decompress to what the row says is an error", "[faults]") {
  Bench bench;
  std::vector<std::byte> bytes;
  const auto read = [&](const ShardReader& shard) { shard.Read(1, bytes); };
  SECTION("another raw size") { bench.bent.Set32(bench.row(1) + 12, 299); }
  SECTION("another hash") { bench.bent.Set64(bench.row(1) + 48, 299); }
  SECTION("another codec") { bench.bent.Set8(bench.row(1) + 35, 2); }
  const std::string what = bench.Thrown(ErrorCode::kCorruption, read);
  if (what == "nothing thrown") {
    CHECK(bytes == EverySection().records()[1].raw);  // the dictionary was not needed
  } else {
    CHECK_THAT(what, Contains("record 1 at byte"));
  }
}

TEST_CASE("positions and lengths in heaps are checked", "[faults]") {
  Bench bench;
  const std::uint64_t position = bench.bent.SectionOffset(kColumn) + 8;
  const auto ask = [](const ShardReader& shard) { shard.Metadata(1); };
  SECTION("position beyond") { bench.bent.Set64(position, 1 << 20); }
  SECTION("position that wraps") { bench.bent.Set64(position, ~std::uint64_t{0}); }
  SECTION("length beyond") { bench.bent.Set32(bench.bent.SectionOffset(kMetadata), 0xFFFFFFFF); }
  CHECK_THAT(bench.Thrown(ErrorCode::kCorruption, ask), Contains("record 1") && Contains("leaves section"));
  CHECK_THAT(bench.Faults(), Contains("range: "));
}

TEST_CASE("the key lookup is checked before use", "[faults]") {
  Bench bench;
  const std::uint64_t entry = bench.bent.SectionOffset(kLookup);
  SECTION("a record that is none") { bench.bent.Set32(entry + 8, 4); }
  SECTION("padding") { bench.bent.Set32(entry + 12, 1); }
  SECTION("order") { bench.bent.Set64(entry, ~std::uint64_t{0}); }
  CHECK_THAT(bench.Thrown(ErrorCode::kCorruption, [](const ShardReader& shard) { shard.Find("cat/1.jpg"); }),
             Contains("key lookup"));
}

TEST_CASE("a lookup that names the wrong record finds nothing and is a fault", "[faults]") {
  Bench bench;
  const std::uint64_t entry = bench.bent.SectionOffset(kLookup);
  bench.bent.Set32(entry + 8, bench.bent.Get32(entry + 16 + 8));
  CHECK_THAT(bench.Faults(), Contains("order: "));
}

TEST_CASE("labels and classmates are checked before use", "[faults]") {
  Bench bench;
  const auto ask = [](const ShardReader& shard) { shard.Classmate(0, 0); };
  SECTION("first") { bench.bent.Set64(bench.bent.SectionOffset(kLabels) + 8, 5); }
  SECTION("count that wraps") { bench.bent.Set64(bench.bent.SectionOffset(kLabels) + 16, ~std::uint64_t{0}); }
  SECTION("order") { bench.bent.Set64(bench.bent.SectionOffset(kLabels), 9); }
  SECTION("classmate") { bench.bent.Set32(bench.bent.SectionOffset(kClassmates), 4); }
  CHECK_THAT(bench.Thrown(ErrorCode::kCorruption, ask), Contains("at byte"));
}

TEST_CASE("classmates of another label are a fault", "[faults]") {
  Bench bench;
  bench.bent.Set32(bench.bent.SectionOffset(kClassmates), 3);
  CHECK_THAT(bench.Faults(), Contains("order: ") && Contains("classmate"));
}

TEST_CASE("class names that leave their section are refused", "[faults]") {
  Bench bench;
  const std::uint64_t names = bench.bent.SectionOffset(kClassNames);
  SECTION("too many") { bench.bent.Set32(names, 0xFFFFFFFF); }
  SECTION("too few") { bench.bent.Set32(names, 1); }
  SECTION("too long") { bench.bent.Set32(names + 4, 0xFFFFFFFF); }
  CHECK_THAT(bench.Thrown(ErrorCode::kCorruption, [](const ShardReader& shard) { shard.class_names(); }),
             Contains("class name"));
  CHECK_THAT(bench.Faults(), Contains("range: "));
}

TEST_CASE("footer and section table that contradict the file are refused at open", "[faults]") {
  Bench bench;
  const std::uint64_t footer = bench.bent.footer_offset();
  const std::uint64_t rows = bench.bent.SectionEntryOffset(kRows);
  SECTION("file size") { bench.bent.Set64(footer + 16, 5); }
  SECTION("number of records") { bench.bent.Set64(footer + 24, 5); }
  SECTION("enormous number of records") { bench.bent.Set64(footer + 24, ~std::uint64_t{0}); }
  SECTION("payload end beyond the index") { bench.bent.Set64(footer + 32, 1 << 20); }
  SECTION("index offset beyond the file") { bench.bent.Set64(footer + 40, std::uint64_t{1} << 40); }
  SECTION("block table beyond the file") { bench.bent.Set64(footer + 48, ~std::uint64_t{63}); }
  SECTION("section table not aligned") { bench.bent.Set64(footer + 56, bench.bent.Get64(footer + 56) + 8); }
  SECTION("number of blocks") { bench.bent.Set32(footer + 64, 0xFFFFFFFF); }
  SECTION("fewer blocks") { bench.bent.Set32(footer + 64, 1); }
  SECTION("number of sections") { bench.bent.Set32(footer + 68, 0xFFFFFFFF); }
  SECTION("fewer sections") { bench.bent.Set32(footer + 68, 2); }
  SECTION("sync marker") { bench.bent.Set64(footer + 88, 1); }
  SECTION("reserved bytes of the footer") { bench.bent.Set8(footer + 100, 1); }
  SECTION("length of the footer") { bench.bent.Set16(footer + 10, 256); }
  SECTION("version 0") { bench.bent.Set16(8, 0); }
  SECTION("reserved bytes of the header") { bench.bent.Set8(30, 1); }
  SECTION("section offset before the index") { bench.bent.Set64(rows + 8, 64); }
  SECTION("section offset that wraps") { bench.bent.Set64(rows + 8, ~std::uint64_t{63}); }
  SECTION("section size beyond the index") { bench.bent.Set64(rows + 16, 1 << 20); }
  SECTION("blocks of no bytes") { bench.bent.Set64(rows + 24, 0); }
  SECTION("blocks of another size") { bench.bent.Set64(rows + 24, 1 << 20); }
  SECTION("number of a section's blocks") { bench.bent.Set32(rows + 32, 2); }
  SECTION("first block of a section") { bench.bent.Set32(rows + 36, 1); }
  SECTION("a section twice") { bench.bent.Set32(bench.bent.SectionEntryOffset(kClassNames), 9); }
  SECTION("type of a column") { bench.bent.Set16(bench.bent.SectionEntryOffset(kColumn) + 44, 2); }
  CHECK_THAT(bench.OpenThrows(), Contains("corrupt") || Contains("version 0") || Contains("truncated"));
}

TEST_CASE("record headers that differ from the index are faults", "[faults]") {
  Bench bench;
  const std::uint64_t header = bench.bent.Get64(bench.row(0)) - (32 + 16 + 8);  // of record 0, whose key has 9 bytes
  SECTION("sync marker") { bench.bent.Set64(header, 1); }
  SECTION("number") { bench.bent.Set32(header + 8, 1); }
  SECTION("label") { bench.bent.Set64(header + 16, 1); }
  SECTION("key") { bench.bent.Set8(header + 32, 'C'); }
  SECTION("encoding") { bench.bent.Set8(header + 30, 2); }
  std::vector<std::byte>& bytes = bench.bent.bytes();
  bench.bent.Set64(header + 32 + 16, Xxh3_64(Bytes(bytes).subspan(header, 32 + 16)));
  CHECK_THAT(bench.Faults(), Contains("record-header: ") && Contains("record 0 at byte " + std::to_string(header)) &&
                                 Contains("differ"));
}

TEST_CASE("a flipped payload bit is reported with its record and offset", "[faults]") {
  Bench bench;
  const std::uint64_t offset = bench.bent.Get64(bench.row(2));
  bench.bent.bytes()[offset] ^= std::byte{4};
  std::vector<std::byte> bytes;
  const std::string where =
      "a.shard: record 2 at byte " + std::to_string(offset) + ": corrupt: checksum mismatch in the payload";
  CHECK_THAT(bench.Thrown(ErrorCode::kCorruption, [&](const ShardReader& shard) { shard.Read(2, bytes); }),
             Contains(where));
  CHECK_THAT(bench.Faults(), Contains("checksum: ") && Contains(where));
}

TEST_CASE("verify reports every fault and shows every good record", "[faults]") {
  Bench bench;
  bench.bent.bytes()[bench.bent.Get64(bench.row(0))] ^= std::byte{1};
  bench.bent.bytes()[bench.bent.Get64(bench.row(2))] ^= std::byte{1};
  const ShardReader shard = bench.Open();
  int faults = 0;
  std::vector<std::uint64_t> good;
  shard.VerifyAll([&](const ShardReader::Fault&) { ++faults; },
                  [&](std::uint64_t i, Bytes bytes) {
                    good.push_back(i);
                    CHECK(Xxh3_64(bytes) == shard.Info(i).encoded_xxh3);
                  });
  CHECK(faults == 2);
  CHECK(good == std::vector<std::uint64_t>{1, 3});
}

TEST_CASE("a damaged dictionary spoils its records only", "[faults]") {
  Bench bench;
  const std::filesystem::path path = bench.Save();
  std::vector<std::byte> bytes = ReadFile(path), out;
  bytes[bench.bent.SectionOffset(kDictionary)] ^= std::byte{1};
  WriteFile(path, bytes);
  const ShardReader shard = ShardReader::Open(path);
  CHECK_THROWS_WITH(shard.Read(2, out), Contains("section \"dictionary\""));
  shard.Read(1, out);
  CHECK(out == EverySection().records()[1].raw);
}
