#include "shardpack/loader/philox.h"

#include <cassert>

namespace shardpack::loader {
namespace {

// Constants of the paper: two odd multipliers and the Weyl increments (golden ratio, sqrt(3) - 1) of the key.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

constexpr std::uint32_t Low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
constexpr std::uint32_t High(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

// Keeps derived keys apart from the seeds they come from.
constexpr std::uint32_t kDerivation = 0x53485046;

}  // namespace

std::array<std::uint32_t, 4> Philox::Block(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1), High(product0) ^ counter[3] ^ key[1],
               Low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// Seed, epoch, sample and operation are 224 bits and a block takes 192: epoch and operation are first folded into the
// key.
Philox::Philox(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::uint32_t operation)
    : counter_{0, 0, Low(sample), High(sample)} {
  const auto derived = Block({Low(epoch), High(epoch), operation, kDerivation}, {Low(seed), High(seed)});
  key_ = {derived[0], derived[1]};
}

std::uint32_t Philox::Next() {
  if (used_ == 4) {
    block_ = Block(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

double Philox::Uniform() { return Next() * 0x1p-32; }

// Lemire, "Fast random integer generation in an interval" (2019): rejects the few products that would be drawn too
// often.
std::uint32_t Philox::Below(std::uint32_t n) {
  assert(n > 0);
  std::uint64_t product = std::uint64_t{Next()} * n;
  if (Low(product) < n) {
    const std::uint32_t threshold = (0u - n) % n;
    while (Low(product) < threshold) product = std::uint64_t{Next()} * n;
  }
  return High(product);
}

}  // namespace shardpack::loader
