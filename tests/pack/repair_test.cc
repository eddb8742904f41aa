#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "tests/support/picture_shards.h"

using namespace shardpack;
using namespace shardpack::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;
using Buffer = std::vector<std::byte>;

constexpr std::uint64_t kMarker = 0x1122334455667788;

RepairOptions Options(const fs::path& shard) {
  RepairOptions options;
  options.shard = shard;
  options.output = shard.native() + ".repaired";
  options.threads = 2;
  return options;
}

// Two shards and their manifest; the second is what gets harmed.
struct Damage {
  TempFolder folder;
  ShardBuilder first = PictureShard("a", 1), second = PictureShard("b", kMarker);
  fs::path shard = folder / "shard-1.shard";
  Buffer whole;
  std::vector<RecordInfo> infos;

  Damage() {
    WriteDataset(folder.path(), {first, second});
    whole = ReadFile(shard);
    const ShardReader reader = ShardReader::Open(shard);
    for (std::uint64_t i = 0; i < reader.num_records(); ++i) infos.push_back(reader.Info(i));
  }
  RepairResult Repaired(const Buffer& harmed) {
    WriteFile(shard, harmed);
    fs::remove(shard.native() + ".repaired");
    return Repair(Options(shard));
  }
  Buffer NewFile() const { return ReadFile(shard.native() + ".repaired"); }

  // Of the new file: key -> the bytes it gives, and what the index says of it.
  std::map<std::string, Buffer> NewRecords() const {
    const ShardReader reader = ShardReader::Open(shard.native() + ".repaired");
    std::map<std::string, Buffer> records;
    for (std::uint64_t i = 0; i < reader.num_records(); ++i) reader.Read(i, records[std::string(reader.Key(i))]);
    return records;
  }
  std::map<std::string, Buffer> AllBut(const std::vector<std::size_t>& lost) const {
    std::map<std::string, Buffer> records;
    for (std::size_t i = 0; i < second.records().size(); ++i) {
      if (std::find(lost.begin(), lost.end(), i) == lost.end())
        records[second.records()[i].key] = second.records()[i].raw;
    }
    return records;
  }
};

void Zero(Buffer& bytes, std::uint64_t begin, std::uint64_t count) {
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), count, std::byte{0});
}

std::uint64_t IndexOffset(const Buffer& shard) { return BentShard(shard).SectionOffset(1); }

}  // namespace

TEST_CASE("a shard whose records are whole comes back byte for byte, whatever became of the rest", "[repair]") {
  Damage damage;
  const std::uint64_t index = IndexOffset(damage.whole), size = damage.whole.size();
  const std::map<std::string, std::function<void(Buffer&)>> harms = {
      {"nothing", [](Buffer&) {}},
      {"footer cut off", [](Buffer& b) { b.resize(b.size() - 128); }},
      {"half of the footer", [](Buffer& b) { b.resize(b.size() - 50); }},
      {"index and footer cut off", [&](Buffer& b) { b.resize(index); }},
      {"footer zeroed", [&](Buffer& b) { Zero(b, size - 128, 128); }},
      {"a bit of the footer", [&](Buffer& b) { b[size - 100] ^= std::byte{4}; }},
      {"index zeroed", [&](Buffer& b) { Zero(b, index, size - index - 128); }},
      {"a bit of the rows", [&](Buffer& b) { b[index + 100] ^= std::byte{1}; }},
      {"a bit of the keys", [&](Buffer& b) { b[BentShard(b).SectionOffset(3) + 2] ^= std::byte{1}; }},
      {"a bit of the metadata", [&](Buffer& b) { b[BentShard(b).SectionOffset(4) + 6] ^= std::byte{1}; }},
      {"a bit of the side data", [&](Buffer& b) { b[BentShard(b).SectionOffset(5) + 6] ^= std::byte{1}; }},
      {"a bit of the dictionary", [&](Buffer& b) { b[BentShard(b).SectionOffset(9) + 6] ^= std::byte{1}; }},
      {"a bit of the class names", [&](Buffer& b) { b[BentShard(b).SectionOffset(11) + 9] ^= std::byte{1}; }},
      {"file header zeroed", [](Buffer& b) { Zero(b, 0, 64); }},
      {"file header and footer zeroed",
       [&](Buffer& b) {
         Zero(b, 0, 64);
         Zero(b, size - 128, 128);
       }},
      {"a bit of a record's header", [&](Buffer& b) { b[damage.infos[3].offset - 20] ^= std::byte{1}; }},
      {"a bit of the dictionary before the records", [](Buffer& b) { b[64 + 60] ^= std::byte{1}; }},
      {"the dictionary before the records and the index",
       [&](Buffer& b) {
         b[64 + 60] ^= std::byte{1};
         b.resize(index);
       }},
  };
  for (const auto& [name, harm] : harms) {
    INFO(name);
    Buffer harmed = damage.whole;
    harm(harmed);
    const RepairResult result = damage.Repaired(harmed);
    CHECK(result.losses.empty());
    CHECK(result.records == 11);
    CHECK(result.notes == std::vector<std::string>{});
    CHECK(result.in_dataset == RepairResult::InDataset::kSameDigest);
    CHECK(result.unchanged == (name == "nothing"));
    CHECK(damage.NewFile() == damage.whole);
    CHECK_FALSE(fs::exists(damage.shard.native() + ".repaired.partial"));
  }
}

TEST_CASE("a harmed payload costs its record alone, which is named", "[repair]") {
  Damage damage;
  for (const bool with_index : {true, false}) {
    Buffer harmed = damage.whole;
    harmed[damage.infos[2].offset + 30] ^= std::byte{1};
    if (!with_index) harmed.resize(IndexOffset(harmed));
    const RepairResult result = damage.Repaired(harmed);
    CHECK(result.index_was_whole == with_index);
    CHECK(result.records == 10);
    REQUIRE(result.losses.size() == 1);
    CHECK(result.losses[0].record == 2u);
    CHECK(result.losses[0].key == "b/2.jpg");
    CHECK(result.losses[0].offset < damage.infos[2].offset);
    CHECK(result.losses[0].offset + result.losses[0].bytes >= damage.infos[2].offset + damage.infos[2].stored_bytes);
    CHECK_THAT(result.losses[0].what, Contains("payload is damaged"));
    CHECK(result.in_dataset == RepairResult::InDataset::kOtherDigest);
    CHECK(damage.NewRecords() == damage.AllBut({2}));
    CHECK(FaultsOf(damage.shard.native() + ".repaired").empty());
  }
}

TEST_CASE("a hole over several records names them, by their keys where the index has them", "[repair]") {
  Damage damage;
  const std::uint64_t begin = damage.infos[1].offset - 8;
  for (const bool with_index : {true, false}) {
    Buffer harmed = damage.whole;
    Zero(harmed, begin, damage.infos[2].offset + 100 - begin);  // record 2 ends after the hole
    if (!with_index) harmed.resize(harmed.size() - 128);
    const RepairResult result = damage.Repaired(harmed);
    CHECK(damage.NewRecords() == damage.AllBut({1, 2}));
    if (with_index) {
      REQUIRE(result.losses.size() == 2);
      CHECK(result.losses[0].key == "b/1.png");
      CHECK(result.losses[1].key == "b/2.jpg");
    } else {
      REQUIRE(result.losses.size() == 1);
      CHECK(result.losses[0].record == 1u);
      CHECK(result.losses[0].records == 2);
      CHECK(result.losses[0].offset <= begin);
      CHECK(result.losses[0].offset + result.losses[0].bytes >= damage.infos[2].offset + damage.infos[2].stored_bytes);
    }
  }
}

TEST_CASE("a harmed block costs its members", "[repair]") {
  Damage damage;
  for (const bool with_index : {true, false}) {
    Buffer harmed = damage.whole;
    harmed[damage.infos[4].offset + 20] ^= std::byte{1};
    if (!with_index) harmed.resize(IndexOffset(harmed));
    const RepairResult result = damage.Repaired(harmed);
    CHECK(damage.NewRecords() == damage.AllBut({4, 5, 6}));
    if (with_index) {
      REQUIRE(result.losses.size() == 3);
      CHECK(result.losses[1].key == "b/5.png");
    } else {
      REQUIRE(result.losses.size() == 1);
      CHECK(result.losses[0].record == 4u);
      CHECK(result.losses[0].records == 3);
    }
  }
}

TEST_CASE("a shard that was cut short gives what came before, and says what is missing", "[repair]") {
  Damage damage;
  Buffer harmed = damage.whole;
  harmed.resize(damage.infos[9].offset + 3);
  SECTION("the manifest knows how many there were") {
    const RepairResult result = damage.Repaired(harmed);
    CHECK(damage.NewRecords() == damage.AllBut({9, 10}));
    REQUIRE(result.losses.size() == 2);
    CHECK(result.losses[0].key == "b/9.png");
    CHECK(result.losses[1].record == 10u);
  }
  SECTION("nobody knows") {
    fs::remove(damage.folder / "dataset.json");
    const RepairResult result = damage.Repaired(harmed);
    CHECK(damage.NewRecords() == damage.AllBut({9, 10}));
    REQUIRE(result.losses.size() == 2);
    CHECK(result.losses[1].records == 0);
    CHECK_THAT(result.losses[1].what, Contains("if there were any"));
    CHECK(result.in_dataset == RepairResult::InDataset::kNotNamed);
  }
}

TEST_CASE("without a manifest rows that lie after the records tell that none is missing", "[repair]") {
  Damage damage;
  fs::remove(damage.folder / "dataset.json");
  Buffer harmed = damage.whole;
  harmed.resize(harmed.size() - 128);
  CHECK(damage.Repaired(harmed).losses.empty());
  CHECK(damage.NewFile() == damage.whole);

  Zero(harmed, damage.infos[10].offset - 48, 48 + damage.infos[10].stored_bytes);  // the last record too
  const RepairResult result = damage.Repaired(harmed);
  REQUIRE(result.losses.size() == 1);
  CHECK(result.losses[0].record == 10u);
  CHECK(damage.NewRecords() == damage.AllBut({10}));
}

TEST_CASE("records are found where a cut moved them", "[repair]") {
  Damage damage;
  Buffer harmed = damage.whole;
  const auto begin = harmed.begin() + static_cast<std::ptrdiff_t>(damage.infos[0].offset);
  harmed.erase(begin + 5, begin + 18);
  const RepairResult result = damage.Repaired(harmed);
  CHECK(damage.NewRecords() == damage.AllBut({0}));
  REQUIRE(result.losses.size() == 1);
  CHECK(result.losses[0].key == "b/0.png");
}

TEST_CASE("what is lost with everything around the records is said", "[repair]") {
  Damage damage;
  fs::remove(damage.folder / "dataset.json");
  fs::remove(damage.folder / "shard-0.shard");
  Buffer harmed = damage.whole;
  harmed.resize(IndexOffset(harmed));
  harmed[64 + 60] ^= std::byte{1};  // the dictionary's only copy
  const RepairResult result = damage.Repaired(harmed);
  CHECK(damage.NewRecords() == damage.AllBut({1, 9}));
  REQUIRE(result.losses.size() == 3);
  CHECK(result.losses[0].key == "b/1.png");
  CHECK_THAT(result.losses[0].what, Contains("dictionary"));
  CHECK(result.losses[1].key == "b/9.png");
  REQUIRE(result.notes.size() == 1);
  CHECK_THAT(result.notes[0], Contains("class names"));
  CHECK(ShardReader::Open(damage.shard.native() + ".repaired").class_names().empty());
}

TEST_CASE("in place goes only what the manifest names", "[repair]") {
  Damage damage;
  Buffer harmed = damage.whole;
  harmed.resize(harmed.size() - 128);
  WriteFile(damage.shard, harmed);
  RepairOptions options = Options(damage.shard);
  options.in_place = true;
  CHECK(Repair(options).placed);
  CHECK(ReadFile(damage.shard) == damage.whole);
  CHECK_FALSE(fs::exists(options.output));

  harmed[damage.infos[2].offset + 30] ^= std::byte{1};
  WriteFile(damage.shard, harmed);
  CHECK_FALSE(Repair(options).placed);
  CHECK(ReadFile(damage.shard) == harmed);
  CHECK(fs::exists(options.output));
}

TEST_CASE("the list of classes that the shard was made with is found by its digest", "[repair]") {
  Damage damage;
  Manifest manifest = Manifest::Load(damage.folder.path());
  manifest.classes.push_back("dog");  // an append brought it
  manifest.Commit(damage.folder.path());
  Buffer harmed = damage.whole;
  harmed.resize(IndexOffset(harmed));
  CHECK(damage.Repaired(harmed).in_dataset == RepairResult::InDataset::kSameDigest);
  CHECK(damage.NewFile() == damage.whole);
}

TEST_CASE("what is no shard is refused, and nothing is overwritten", "[repair]") {
  Damage damage;
  const auto code = [&](const Buffer& bytes) {
    try {
      damage.Repaired(bytes);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kNotFound;
  };
  CHECK(code({}) == ErrorCode::kCorruption);
  CHECK(code(Noise(100, 1)) == ErrorCode::kCorruption);
  CHECK(code(Noise(100'000, 2)) == ErrorCode::kCorruption);
  CHECK(code(Buffer(damage.whole.begin(), damage.whole.begin() + 64)) == ErrorCode::kCorruption);
  CHECK(code(ToBytes("\x89HDF\r\n\x1a\n and so on")) == ErrorCode::kUnsupported);
  CHECK_FALSE(fs::exists(damage.shard.native() + ".repaired"));
  CHECK_FALSE(fs::exists(damage.shard.native() + ".repaired.partial"));

  WriteFile(damage.shard, damage.whole);
  WriteFile(damage.shard.native() + ".repaired", ToBytes("precious"));
  CHECK_THROWS_WITH(Repair(Options(damage.shard)), Contains("exists"));
  CHECK(damage.NewFile() == ToBytes("precious"));
}

TEST_CASE("wherever a byte is harmed, no more is lost than the record or block it lies in", "[repair][slow]") {
  Damage damage;
  for (std::size_t at = 0; at < damage.whole.size(); at += 37) {
    INFO("byte " << at);
    Buffer harmed = damage.whole;
    harmed[at] ^= std::byte{0x41};
    const RepairResult result = damage.Repaired(harmed);
    CHECK(result.records + 3 >= 11);
    for (const auto& [key, raw] : damage.NewRecords()) CHECK(damage.AllBut({}).at(key) == raw);
    if (result.losses.empty()) CHECK(damage.NewFile() == damage.whole);
  }
}
