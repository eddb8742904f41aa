#include <cassert>
#include <cmath>

#include "loader/order/operations.h"
#include "shardpack/loader/order.h"
#include "shardpack/loader/philox.h"

namespace shardpack::loader {
namespace {

__extension__ using Product = unsigned __int128;

// The keyed round function: the finaliser of SplitMix64 (Stafford's variant 13) over value + key, brought into [0,
// range) by the high half of a product, which needs no division.
std::uint64_t Round(std::uint64_t value, std::uint64_t key, std::uint64_t range) {
  std::uint64_t z = value + key;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<std::uint64_t>((Product{z} * range) >> 64);
}

// The smallest a with a * a >= n, without trusting floating point.
std::uint64_t CeilOfRoot(std::uint64_t n) {
  auto a = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)));
  while (Product{a} * a >= n && a > 1) --a;
  while (Product{a} * a < n) ++a;
  return a;
}

}  // namespace

Permutation::Permutation(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch) : n_(n) {
  Philox random(seed, epoch, n, kShuffleOperation);
  if (n <= kTabulated) {
    for (std::uint32_t i = 0; i < n; ++i) {  // inside-out: place i takes the value at j, which takes i
      const std::uint32_t j = random.Below(i + 1);
      table_[i] = table_[j];
      table_[j] = static_cast<std::uint8_t>(i);
    }
    return;
  }
  a_ = CeilOfRoot(n);
  b_ = n / a_ + (n % a_ != 0);
  for (std::uint64_t& key : keys_) {
    const std::uint64_t high = random.Next();
    key = high << 32 | random.Next();
  }
}

std::uint64_t Permutation::Network(std::uint64_t x) const {
  std::uint64_t left = x % a_, right = x / a_;
  for (int i = 0; i < kRounds; i += 2) {
    left += Round(right, keys_[static_cast<std::size_t>(i)], a_);
    if (left >= a_) left -= a_;
    right += Round(left, keys_[static_cast<std::size_t>(i) + 1], b_);
    if (right >= b_) right -= b_;
  }
  return right * a_ + left;
}

std::uint64_t Permutation::operator()(std::uint64_t position) const {
  assert(position < n_);
  if (n_ <= kTabulated) return table_[position];
  // Walking along the cycle of the larger domain comes back into [0, n), for it started there.
  std::uint64_t x = Network(position);
  while (x >= n_) x = Network(x);
  return x;
}

}  // namespace shardpack::loader
