#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "shardpack/loader/order.h"

namespace shardpack::loader {
namespace {

std::vector<std::uint64_t> AllOf(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch) {
  const Permutation permutation(n, seed, epoch);
  std::vector<std::uint64_t> samples(n);
  for (std::uint64_t p = 0; p < n; ++p) samples[p] = permutation(p);
  return samples;
}

bool IsPermutation(std::vector<std::uint64_t> samples) {
  std::sort(samples.begin(), samples.end());
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    if (samples[i] != i) return false;
  }
  return true;
}

TEST_CASE("every sample stands at exactly one position", "[order]") {
  for (std::uint64_t n = 0; n <= 700; ++n) {
    CAPTURE(n);
    REQUIRE(IsPermutation(AllOf(n, n * 7919, n % 5)));
  }
  for (std::uint64_t n : {1023ull, 1024ull, 1025ull, 4096ull, 9999ull, 65536ull, 65537ull, 1000003ull}) {
    CAPTURE(n);
    REQUIRE(IsPermutation(AllOf(n, 1, 0)));
  }
}

// Statistic of n - 1 squared degrees of freedom, as a distance from its mean in deviations.
double PositionsChiSquare(std::uint64_t n, int seeds) {
  std::vector<std::uint32_t> counts(n * n);
  for (int seed = 0; seed < seeds; ++seed) {
    const auto samples = AllOf(n, static_cast<std::uint64_t>(seed), 3);
    for (std::uint64_t p = 0; p < n; ++p) ++counts[p * n + samples[p]];
  }
  const double expected = static_cast<double>(seeds) / static_cast<double>(n);
  double chi_square = 0;
  for (std::uint32_t count : counts) chi_square += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>((n - 1) * (n - 1));
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST_CASE("each sample is as likely at each position", "[order]") {
  for (std::uint64_t n : {2ull, 3ull, 5ull, 10ull, 100ull, 257ull, 300ull}) {
    CAPTURE(n);
    CHECK(std::abs(PositionsChiSquare(n, 4000)) < 5);
  }
}

TEST_CASE("all orders of three and of four samples occur equally often", "[order]") {
  for (std::uint64_t n : {3ull, 4ull}) {
    std::map<std::vector<std::uint64_t>, int> counts;
    constexpr int kSeeds = 24000;
    for (int seed = 0; seed < kSeeds; ++seed) ++counts[AllOf(n, static_cast<std::uint64_t>(seed), 0)];
    const std::size_t orders = n == 3 ? 6 : 24;
    REQUIRE(counts.size() == orders);
    const double expected = static_cast<double>(kSeeds) / static_cast<double>(orders);
    double chi_square = 0;
    for (const auto& [order, count] : counts) chi_square += (count - expected) * (count - expected) / expected;
    CHECK(chi_square < 55);  // 99.98th percentile of 23 degrees of freedom
  }
}

// In a random order, neighbours are descending as often as ascending, and n-th powers of structure would show as
// correlation with the identity.
TEST_CASE("a large order has no visible structure", "[order]") {
  for (std::uint64_t n : {257ull, 1000ull, 65536ull, 1000000ull}) {
    CAPTURE(n);
    const auto samples = AllOf(n, 5, 6);
    double ascents = 0, fixed = 0, correlation = 0;
    const double mean = (static_cast<double>(n) - 1) / 2;
    for (std::uint64_t p = 0; p < n; ++p) {
      if (p > 0) ascents += samples[p] > samples[p - 1];
      fixed += samples[p] == p;
      correlation += (static_cast<double>(p) - mean) * (static_cast<double>(samples[p]) - mean);
    }
    const double size = static_cast<double>(n);
    CHECK(std::abs(ascents - (size - 1) / 2) < 5 * std::sqrt((size + 1) / 12));
    CHECK(fixed < 8);
    CHECK(std::abs(correlation / (size * size * size / 12)) < 5 / std::sqrt(size));
  }
}

TEST_CASE("orders of other seeds and epochs have no more than chance in common", "[order]") {
  const auto first = AllOf(10000, 1, 0);
  for (auto [seed, epoch] : {std::pair{1, 1}, {0, 1}, {2, 0}, {1, 2}}) {
    const auto other = AllOf(10000, static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(epoch));
    int same = 0;
    for (std::size_t p = 0; p < first.size(); ++p) same += first[p] == other[p];
    CHECK(same < 9);  // Poisson of mean 1
  }
  CHECK(first == AllOf(10000, 1, 0));
}

TEST_CASE("positions of an index of ten thousand million samples are found at once and apart", "[order]") {
  constexpr std::uint64_t kSamples = 10'000'000'000;
  const Permutation permutation(kSamples, 1, 2);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const std::uint64_t sample = permutation(kSamples - 1 - i * 999'983);
    REQUIRE(sample < kSamples);
    seen.insert(sample);
  }
  CHECK(seen.size() == 10000);
}

TEST_CASE("the order without shuffling is the index's, and hashes tell the two apart", "[order]") {
  Order none{100, Shuffle::kNone, 7}, global{100, Shuffle::kGlobal, 7};
  for (std::uint64_t p = 0; p < 100; ++p) CHECK(none.SampleAt(3, p) == p);
  CHECK(global.SampleAt(3, 5) == Permutation(100, 7, 3)(5));
  CHECK(none.Hash() != global.Hash());
  CHECK(none.Hash().size() == 16);
  CHECK(global.Hash() == Order{5, Shuffle::kGlobal, 9}.Hash());
}

// Values of a second implementation (Python, by the description in order.h). Frozen: states of published versions are
// resumed with it. A change of these numbers needs a new version in Order::Hash().
TEST_CASE("the order of version 1 never changes", "[order]") {
  CHECK(AllOf(8, 1, 0) == std::vector<std::uint64_t>{3, 4, 7, 0, 1, 6, 5, 2});
  const Permutation large(1'000'000, 1, 0);
  const std::vector<std::uint64_t> first = {large(0), large(1), large(2), large(999'999)};
  CHECK(first == std::vector<std::uint64_t>{935023, 499494, 307627, 572821});
}

}  // namespace
}  // namespace shardpack::loader
