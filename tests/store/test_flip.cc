// Every byte of a small shard that has all sections, harmed in turn.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "shardpack/error.h"
#include "shardpack/shard_reader.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;

namespace {

// What a reader told of the shard, member by member; what threw is left out.
struct Told {
  int told = 0, wrong = 0;
};

template <typename Ask>
void Compare(Told& told, Ask ask) {
  try {
    const bool right = ask();
    ++told.told;
    told.wrong += !right;
  } catch (const Error& error) {
    const bool expected = error.code() == ErrorCode::kCorruption || error.code() == ErrorCode::kUnsupported;
    if (!expected || error.where().path.empty()) ++told.wrong;
  }
}

// Asks for everything and compares with what was packed.
Told AskAll(const std::filesystem::path& path, const ShardBuilder& truth) {
  Told told;
  Compare(told, [&] {
    const ShardReader shard = ShardReader::Open(path);
    if (shard.num_records() != truth.records().size()) return false;
    Compare(told, [&] { return shard.class_names() == truth.options.class_names; });
    for (std::uint64_t i = 0; i < shard.num_records(); ++i) {
      const TestRecord& record = truth.records()[i];
      std::vector<std::byte> bytes;
      Compare(told, [&] { return shard.Key(i) == record.key; });
      Compare(told, [&] { return AsText(shard.Metadata(i)) == record.metadata; });
      Compare(told, [&] { return std::ranges::equal(shard.SideData(i), record.side_data); });
      Compare(told, [&] {
        return shard.Info(i).label == record.label && shard.Info(i).width == record.width &&
               shard.Info(i).orientation == record.orientation;
      });
      Compare(told, [&] { return shard.Find(record.key) == i; });
      Compare(told,
              [&] { return shard.NumClassmates(record.label) == 2 && shard.Classmate(record.label, i % 2) == i; });
      Compare(told, [&] {
        shard.Read(i, bytes);
        return bytes == record.raw;
      });
    }
    return true;
  });
  return told;
}

}  // namespace

namespace {

void CheckEveryFlip(const std::vector<std::byte>& good, const ShardBuilder& truth) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "a.shard";
  WriteFile(path, good);
  const Told all = AskAll(path, truth);
  REQUIRE(all.wrong == 0);
  REQUIRE(all.told == static_cast<int>(2 + 7 * truth.records().size()));
  REQUIRE(FaultsOf(path).empty());

  // In place: some file systems flush a file that is cut and written anew.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t at, std::byte value) {
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(value)).flush();
    REQUIRE(file.good());
  };
  std::vector<std::size_t> unreported, wrong;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      put(at, good[at] ^ static_cast<std::byte>(flip));
      if (FaultsOf(path).empty()) unreported.push_back(at);
      if (AskAll(path, truth).wrong != 0) wrong.push_back(at);
    }
    put(at, good[at]);
  }
  CHECK(FaultsOf(path).empty());
  CHECK(unreported.empty());
  CHECK(wrong.empty());
}

std::vector<std::byte> OldGolden() {
  return ReadFile(std::filesystem::path(SHARDPACK_TEST_DATA) / "record_shard_v1.shard");
}

}  // namespace

TEST_CASE("no flipped byte is read as good data, and each is reported", "[flip]") {
  SECTION("of a shard of an earlier writer") { CheckEveryFlip(OldGolden(), EverySection()); }
  SECTION("of a shard with every section") { CheckEveryFlip(EverySectionBytes(), EverySection()); }
  SECTION("of a shard with blocks") { CheckEveryFlip(EveryFeatureBytes(), EveryFeature()); }
}

TEST_CASE("a shard cut at any length is refused, and named truncated, empty or corrupt", "[flip]") {
  const TempFolder folder;
  const std::vector<std::byte> good = GENERATE(OldGolden(), EveryFeatureBytes());
  const std::filesystem::path path = folder / "a.shard";
  WriteFile(path, good);
  for (std::size_t size = good.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    try {
      ShardReader::Open(path);
      FAIL("a cut shard opened at " << size);
    } catch (const Error& error) {
      const std::string what = error.what();
      const bool named = what.find("truncated") != std::string::npos || what.find("empty") != std::string::npos ||
                         what.find("corrupt") != std::string::npos;
      if (error.code() != ErrorCode::kCorruption || !named) FAIL(size << ": " << what);
    }
  }
}

TEST_CASE("bytes added after the footer are refused", "[flip]") {
  const TempFolder folder;
  const std::size_t size = EverySectionBytes().size();
  WriteFile(folder / "a.shard", EverySectionBytes());
  for (std::size_t more = 1; more <= 300; ++more) {
    std::filesystem::resize_file(folder / "a.shard", size + more);
    CHECK_THROWS_AS(ShardReader::Open(folder / "a.shard"), Error);
  }
}
