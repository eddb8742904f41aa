// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1,
// 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace shardpack::loader {

// What a sample's augmentation draws from: keyed by (seed, epoch, sample, operation), so that the numbers are the same
// on any thread or rank and different everywhere else.
class Philox {
 public:
  Philox(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::uint32_t operation);

  std::uint32_t Next();                  // uniform in [0, 2^32)
  double Uniform();                      // uniform in [0, 1), 32 bits of it
  std::uint32_t Below(std::uint32_t n);  // uniform in [0, n), without bias; n > 0

  // The raw block function, for known-answer tests.
  static std::array<std::uint32_t, 4> Block(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

 private:
  std::array<std::uint32_t, 4> counter_, block_;
  std::array<std::uint32_t, 2> key_;
  int used_ = 4;
};

}  // namespace shardpack::loader
