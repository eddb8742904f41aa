#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "shardpack/error.h"
#include "tests/loader/picture_dataset.h"

namespace shardpack::loader {
namespace {

using Catch::Contains;

LoaderOptions Options() {
  LoaderOptions options;
  options.batch_size = 6;
  options.seed = 7;
  options.transform = TrainTransform(16);
  options.threads = 3;
  return options;
}

// Place of each valid sample in a run: (batch, place).
std::pair<std::size_t, std::size_t> PlaceOf(const std::vector<BatchCopy>& batches, std::int64_t index) {
  for (std::size_t b = 0; b < batches.size(); ++b) {
    for (std::size_t k = 0; k < batches[b].indices.size(); ++k) {
      if (batches[b].indices[k] == index && k < 6 && (batches[b].valid[k] || batches[b].source_indices[k] == index))
        return {b, k};
    }
  }
  throw std::runtime_error("no such sample");
}

TEST_CASE("a damaged record is replaced by a classmate, the same in every run, and told", "[loader][bad]") {
  const PictureDataset data({});
  const auto whole = AllBatches(data.Open(), Options());
  for (std::uint64_t bad : {3u, 17u, 30u}) data.DamageRecord(bad);

  LoaderOptions options = Options();
  test::TempFolder folder;
  options.ledger = folder / "ledger.jsonl";
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& line) { warnings.push_back(line); };
  const auto batches = AllBatches(data.Open(), options);

  REQUIRE(batches.size() == whole.size());
  int replaced = 0;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    CHECK(batches[b].indices == whole[b].indices);
    CHECK(batches[b].valid == whole[b].valid);
    for (std::size_t k = 0; k < 6; ++k) {
      const std::int64_t index = batches[b].indices[k], source = batches[b].source_indices[k];
      CHECK(batches[b].labels[k] == data.label(static_cast<std::uint64_t>(index)));
      CHECK(data.label(static_cast<std::uint64_t>(source)) == batches[b].labels[k]);
      CHECK((source != 3 && source != 17 && source != 30));
      replaced += batches[b].valid[k] && source != index;
    }
  }
  CHECK(replaced == 3);
  options.threads = 1;
  options.ledger.clear();
  CHECK(AllBatches(data.Open(), options) == batches);

  REQUIRE(warnings.size() == 6);
  CHECK_THAT(warnings[0], Contains("shard-") && Contains("record") && Contains("at byte") && Contains("stands in"));
  std::ifstream ledger(folder / "ledger.jsonl");
  std::vector<std::string> lines;
  for (std::string line; std::getline(ledger, line);) lines.push_back(line);
  REQUIRE(lines.size() == 3);
  for (const std::string& line : lines) {
    CHECK_THAT(line, Contains("\"step\":") && Contains("\"index\":") && Contains("\"delivered\":") &&
                         Contains("\"shard\":\"shard-") && Contains("\"record\":") && Contains("\"offset\":") &&
                         Contains("\"key\":\"000") && Contains("\"reason\":\""));
  }
}

TEST_CASE("under exact a damaged record is masked, counted and never replaced", "[loader][bad]") {
  const PictureDataset data({});
  data.DamageRecord(17);
  LoaderOptions options = Options();
  options.tail = Tail::kExact;
  DataLoader loader(data.Open(), options);
  auto epoch = loader.Epoch(0);
  std::uint64_t valid = 0, global = 0;
  bool seen = false;
  while (auto batch = epoch.Next()) {
    const BatchCopy copy = CopyOf(*batch);
    valid += copy.num_valid;
    global += copy.global_valid;
    CHECK(std::count(copy.valid.begin(), copy.valid.end(), true) == copy.num_valid);
    for (std::size_t k = 0; k < 6; ++k) {
      CHECK(copy.source_indices[k] == copy.indices[k]);
      if (copy.indices[k] != 17) continue;
      seen = true;
      CHECK_FALSE(copy.valid[k]);
      const auto* pixels = copy.images.data() + k * 768;
      CHECK(std::all_of(pixels, pixels + 768, [](std::byte b) { return b == std::byte{0}; }));
    }
  }
  CHECK(seen);
  CHECK(valid == 39);
  CHECK(global == 40);
  CHECK(epoch.report().masked == 1);
  CHECK(epoch.report().substituted == 0);
}

TEST_CASE("kThrow gives the error with shard, record and place, at its own batch, again and again", "[loader][bad]") {
  const PictureDataset data({});
  const auto whole = AllBatches(data.Open(), Options());
  const std::size_t step = PlaceOf(whole, 17).first;
  data.DamageRecord(17);
  LoaderOptions options = Options();
  options.on_bad_record = OnBadRecord::kThrow;
  DataLoader loader(data.Open(), options);
  auto epoch = loader.Epoch(0);
  for (std::size_t i = 0; i < step; ++i) CHECK(CopyOf(epoch.Next().value()) == whole[i]);
  for (int again = 0; again < 2; ++again) {
    try {
      epoch.Next();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCorruption);
      CHECK(error.where().record == data.Open().PlaceOf(17).record);
      CHECK(error.where().offset == data.Open().Info(17).offset);
      CHECK_THAT(error.what(), Contains("shard-"));
    }
  }
}

TEST_CASE("one bad record more than the limit throws", "[loader][bad]") {
  const PictureDataset data({});
  for (std::uint64_t bad : {3u, 17u, 30u}) data.DamageRecord(bad);
  LoaderOptions options = Options();
  options.max_bad_records = 3;
  CHECK(AllBatches(data.Open(), options).size() == 7);
  options.max_bad_records = 2;
  CHECK_THROWS_WITH(AllBatches(data.Open(), options), Contains("number 3") && Contains("max_bad_records is 2"));
}

TEST_CASE("where a class has no other record any record stands in, and its label counts", "[loader][bad]") {
  PictureDataset::Options pictures;
  pictures.num_samples = pictures.num_classes = 12;
  const PictureDataset data(pictures);
  data.DamageRecord(5);
  const auto batches = AllBatches(data.Open(), Options());
  const auto [b, k] = PlaceOf(batches, 5);
  CHECK(batches[b].source_indices[k] != 5);
  CHECK(batches[b].labels[k] == data.label(static_cast<std::uint64_t>(batches[b].source_indices[k])));
}

TEST_CASE("when nothing good is left the error ends the run", "[loader][bad]") {
  PictureDataset::Options pictures;
  pictures.num_samples = 4;
  pictures.num_shards = 1;
  const PictureDataset data(pictures);
  for (std::uint64_t i = 0; i < 4; ++i) data.DamageRecord(i);
  CHECK_THROWS_WITH(AllBatches(data.Open(), Options()), Contains("no other record"));
}

TEST_CASE("under exact all records may be bad: every step comes, every place is masked", "[loader][bad]") {
  const PictureDataset data({});
  for (std::uint64_t i = 0; i < 40; ++i) data.DamageRecord(i);
  LoaderOptions options = Options();
  options.tail = Tail::kExact;
  const auto batches = AllBatches(data.Open(), options);
  REQUIRE(batches.size() == 7);
  for (const BatchCopy& batch : batches) CHECK(batch.num_valid == 0);
}

TEST_CASE("records whose index rows cannot be trusted are bad records, not the end of the run", "[loader][bad]") {
  const PictureDataset data({});
  const auto whole = AllBatches(data.Open(), Options());
  data.DamageIndex(1);
  const auto batches = AllBatches(data.Open(), Options());
  REQUIRE(batches.size() == whole.size());
  const Dataset dataset = data.Open();
  int replaced = 0;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    for (std::size_t k = 0; k < 6; ++k) {
      const auto index = static_cast<std::uint64_t>(batches[b].indices[k]),
                 source = static_cast<std::uint64_t>(batches[b].source_indices[k]);
      CHECK(dataset.PlaceOf(source).shard != 1);
      CHECK((dataset.PlaceOf(index).shard == 1) == (source != index));
      CHECK(batches[b].labels[k] == data.label(source));
      replaced += batches[b].valid[k] && source != index;
    }
  }
  CHECK(replaced == 13);
}

TEST_CASE("a missing or cut shard is named before training", "[loader][bad]") {
  const PictureDataset data({});
  const std::string shard = data.Open().manifest().shards[2].file;
  const auto bytes = std::filesystem::file_size(data.folder() / shard);
  const auto code = [&] {
    try {
      DataLoader(data.Open(), Options());
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Contains(shard));
      return error.code();
    }
    FAIL("no error");
    return ErrorCode::kIo;
  };
  std::filesystem::resize_file(data.folder() / shard, bytes - 1);
  CHECK(code() == ErrorCode::kCorruption);
  std::filesystem::remove(data.folder() / shard);
  CHECK(code() == ErrorCode::kCorruption);
}

TEST_CASE("a shard that vanishes during a run costs its records, until the limit ends the run", "[loader][bad]") {
  const PictureDataset data({});
  LoaderOptions options = Options();
  for (const std::uint64_t limit : {13u, 12u}) {  // the third of three shards holds 13 of 40 records
    options.max_bad_records = limit;
    DataLoader loader(data.Open(), options);
    const std::string shard = loader.dataset().manifest().shards[2].file;
    const auto path = data.folder() / shard, away = data.folder() / "away";
    std::filesystem::rename(path, away);
    auto epoch = loader.Epoch(0);
    const auto run = [&] {
      while (const auto batch = epoch.Next()) {
        for (std::int64_t source : CopyOf(*batch).source_indices) {
          CHECK(loader.dataset().PlaceOf(static_cast<std::uint64_t>(source)).shard != 2);
        }
      }
    };
    if (limit == 13) {
      run();
      CHECK(epoch.report().substituted == 13);
    } else {
      CHECK_THROWS_WITH(run(), Contains(shard) && Contains("max_bad_records is 12"));
    }
    std::filesystem::rename(away, path);
  }
}

TEST_CASE("padding places are filled without a word even where their record is bad", "[loader][bad]") {
  const PictureDataset data({});
  const auto whole = AllBatches(data.Open(), Options());
  const std::int64_t first = whole[0].indices[0];  // position 0: also the first padding of the last batch
  REQUIRE(whole[6].indices[4] == first);
  data.DamageRecord(static_cast<std::uint64_t>(first));
  LoaderOptions options = Options();
  DataLoader loader(data.Open(), options);
  auto epoch = loader.Epoch(0);
  while (epoch.Next()) {
  }
  CHECK(epoch.report().bad_records.size() == 1);
  State late = loader.state();
  late.consumed = 36;
  options.on_bad_record = OnBadRecord::kThrow;
  DataLoader strict(data.Open(), options);
  strict.Restore(late);
  auto rest = strict.Epoch(0);
  CHECK(CopyOf(rest.Next().value()).num_valid == 4);
}

}  // namespace
}  // namespace shardpack::loader
