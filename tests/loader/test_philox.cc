#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "shardpack/loader/philox.h"

namespace shardpack::loader {
namespace {

using Four = std::array<std::uint32_t, 4>;

// From kat_vectors of the Random123 distribution, lines "philox4x32 10".
TEST_CASE("Philox4x32-10 gives the known answers of Random123", "[philox]") {
  CHECK(Philox::Block({0, 0, 0, 0}, {0, 0}) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox::Block({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox::Block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("each of seed, epoch, sample and operation changes the stream", "[philox]") {
  std::set<std::uint64_t> first;
  int streams = 0;
  for (std::uint64_t high : {0ull, 1ull << 32}) {
    for (std::uint64_t value = 0; value < 8; ++value) {
      for (int which = 0; which < 4; ++which) {
        if (which == 3 && high != 0) continue;
        std::uint64_t key[4] = {9, 9, 9, 9};
        key[which] = which == 3 ? value : high + value;
        Philox random(key[0], key[1], key[2], static_cast<std::uint32_t>(key[3]));
        const std::uint64_t word = random.Next();
        first.insert(word << 32 | random.Next());
        ++streams;
      }
    }
  }
  CHECK(static_cast<int>(first.size()) == streams);
}

TEST_CASE("numbers below n are uniform and in range", "[philox]") {
  Philox random(1, 2, 3, 4);
  for (std::uint32_t n : {1u, 2u, 3u, 7u, 10u}) {
    std::vector<int> counts(n);
    for (int i = 0; i < 10000; ++i) ++counts.at(random.Below(n));
    double chi_square = 0;
    for (int count : counts) chi_square += (count - 10000.0 / n) * (count - 10000.0 / n) / (10000.0 / n);
    CHECK(chi_square < n + 25);  // far beyond the 99.9th percentile for up to 9 degrees of freedom
  }
  for (int i = 0; i < 1000; ++i) {
    const double u = random.Uniform();
    REQUIRE((u >= 0 && u < 1));
  }
}

}  // namespace
}  // namespace shardpack::loader
