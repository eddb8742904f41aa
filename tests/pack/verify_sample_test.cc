#include "libshard/pack/verify_sample.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "tests/support/picture_shards.h"

using namespace shardpack;
using namespace shardpack::test;

TEST_CASE("a sample comes to every record once", "[verify]") {
  for (const std::uint64_t n : {1u, 2u, 3u, 17u, 4095u, 4096u, 4097u, 12'289u, 100'003u}) {
    const SampleOrder order(n, n * 7 + 1);
    std::vector<bool> seen(n);
    for (std::uint64_t k = 0; k < n; ++k) {
      REQUIRE(order[k] < n);
      REQUIRE_FALSE(seen[order[k]]);
      seen[order[k]] = true;
    }
  }
}

TEST_CASE("a sample is spread evenly, wherever it stops after a round", "[verify]") {
  const SampleOrder order(409'600, 5), other(409'600, 6);
  for (const std::uint64_t rounds : {1u, 3u, 40u}) {
    std::vector<std::uint64_t> in_part(4096);
    for (std::uint64_t k = 0; k < rounds * 4096; ++k) ++in_part[order[k] / 100];
    CHECK(in_part == std::vector<std::uint64_t>(4096, rounds));
  }
  std::uint64_t same = 0;
  for (std::uint64_t k = 0; k < 1000; ++k) same += order[k] == other[k] ? 1 : 0;
  CHECK(same < 50);
}

TEST_CASE("the bound is where so few damaged records have a probability of one in twenty", "[verify]") {
  CHECK(DamagedShareBound(0, 0, 0.95) == 1);
  CHECK(DamagedShareBound(5, 5, 0.95) == 1);
  CHECK(DamagedShareBound(100, 0, 0.95) == Approx(1 - std::pow(0.05, 0.01)));
  for (const auto& [n, damaged] : {std::pair<int, int>{10, 1}, {100, 2}, {1000, 7}}) {
    const double p = DamagedShareBound(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(damaged), 0.95);
    double term = std::pow(1 - p, n), sum = term;  // of exactly k damaged, by the one before
    for (int k = 1; k <= damaged; ++k) sum += term *= (n - k + 1) * p / (k * (1 - p));
    CHECK(sum == Approx(0.05).epsilon(1e-6));
  }
}

TEST_CASE("in a budget that is large enough every record is looked at, and damage is named", "[verify]") {
  const TempFolder folder;
  WriteDataset(folder.path(), {PictureShard("a", 1), PictureShard("b", 2)});
  VerifyOptions options;
  options.decode = true;
  options.budget = std::chrono::hours(1);
  const VerifyResult whole = Verify(folder.path(), options);
  CHECK(whole.faults.empty());
  REQUIRE(whole.sample);
  CHECK(whole.sample->records == 22);
  CHECK(whole.sample->damaged_share_bound == 0);

  const std::filesystem::path shard = folder / "shard-1.shard";
  std::vector<std::byte> bytes = ReadFile(shard);
  const RecordInfo info = ShardReader::Open(shard).Info(2);
  bytes[info.offset + 30] ^= std::byte{1};
  WriteFile(shard, bytes);
  const VerifyResult harmed = Verify(folder.path(), options);
  REQUIRE(harmed.faults.size() == 1);
  CHECK(harmed.faults[0].key == "b/2.jpg");
  CHECK(harmed.faults[0].offset == info.offset);
  CHECK(harmed.sample->damaged == 1);

  std::filesystem::remove(shard);
  const VerifyResult missing = Verify(folder.path(), options);
  REQUIRE(missing.faults.size() == 12);  // the shard, and each of its records
  CHECK(missing.sample->damaged == 11);
  for (std::uint64_t i = 0; i < missing.faults.size(); ++i) {
    CHECK(missing.faults[i].shard == "shard-1.shard");
    CHECK(missing.faults[i].record == (i == 0 ? std::nullopt : std::optional(i - 1)));
  }
  WriteFile(shard, bytes);

  options.budget = std::chrono::nanoseconds(1);
  const VerifyResult none = Verify(folder.path(), options);
  CHECK(none.sample->records == 0);
  CHECK(none.sample->damaged_share_bound == 1);

  WriteFile(folder / kManifestName, bytes);
  const VerifyResult unreadable = Verify(folder.path() / "", options);
  REQUIRE(unreadable.faults.size() == 1);
  CHECK(unreadable.faults[0].shard == "dataset.json");
  CHECK(unreadable.faults[0].kind == "manifest");
}
