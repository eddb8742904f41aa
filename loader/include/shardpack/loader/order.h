// Which sample stands where: pure functions of index size, seed and epoch. No files, no state, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardpack::loader {

enum class Shuffle { kGlobal, kNone };
enum class Tail {
  kPad,    // the last global batch wraps to the epoch's first samples; `valid` marks the padding
  kDrop,   // a last global batch that is not full is left out
  kExact,  // for evaluation: as kPad, and nothing is ever substituted
};
std::string_view Name(Shuffle shuffle);
std::string_view Name(Tail tail);

// A keyed bijection of [0, n), O(1) memory, any position at once.
//
// Up to kTabulated samples it is a table filled by Fisher and Yates' shuffle, so that each of the n! orders is as
// likely as another. Above, it is Black and Rogaway's generalised Feistel network on a x b >= n with cycle walking
// ("Ciphers with arbitrary finite domains", CT-RSA 2002) of eight rounds; a and b are near the square root of n, so
// that less than one position in 16 walks at all.
class Permutation {
 public:
  static constexpr std::uint64_t kTabulated = 256;

  // Equal arguments give the same bijection on every machine, for ever (its version is part of Order::Hash).
  Permutation(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch);
  std::uint64_t operator()(std::uint64_t position) const;  // precondition: position < n

 private:
  static constexpr int kRounds = 8;
  std::uint64_t Network(std::uint64_t x) const;

  std::uint64_t n_;
  std::uint64_t a_ = 1, b_ = 1;
  std::array<std::uint64_t, kRounds> keys_{};
  std::array<std::uint8_t, kTabulated> table_{};
};

// The order of one epoch over `num_samples` samples.
struct Order {
  std::uint64_t num_samples = 0;
  Shuffle shuffle = Shuffle::kGlobal;
  std::uint64_t seed = 0;

  // 16 hex digits over everything that decides the order but seed and epoch: shuffle, filters, and the version of the
  // bijection.
  std::string Hash() const;
  // The sample at position p of an epoch. Precondition: p < num_samples. For many positions of one epoch keep a
  // Permutation.
  std::uint64_t SampleAt(std::uint64_t epoch, std::uint64_t p) const;
};

// One rank's slice of one step.
struct Slice {
  std::uint64_t begin = 0;           // first position of the epoch; may be >= num_samples under kPad: see PositionOf
  std::uint32_t size = 0;            // always the batch size
  std::uint32_t num_valid = 0;       // the first num_valid places are samples, the rest is padding
  std::uint64_t consumed_after = 0;  // the state's C once this step is done
};

// The steps of one epoch from `consumed` on. C samples consumed, G = world_size x batch_size: a step is positions [C,
// min(C + G, N)); rank r takes places [r B, (r + 1) B) of it; then C is its end. Steps left: ceil((N - C) / G), floor
// under kDrop.
struct StepPlan {
  std::uint64_t num_samples = 0;
  std::uint64_t consumed = 0;  // at step 0 of this plan
  std::uint32_t world_size = 1, rank = 0;
  std::uint32_t batch_size = 1;
  Tail tail = Tail::kPad;

  std::uint64_t num_steps() const;
  Slice SliceOf(std::uint64_t step) const;  // precondition: step < num_steps()
  // The position in the epoch of place k of a slice: padding wraps to the epoch's first positions.
  std::uint64_t PositionOf(const Slice& slice, std::uint32_t k) const;
  // Valid samples of all ranks in this step.
  std::uint64_t GlobalValid(std::uint64_t step) const;
};

// 64-bit digest of what all ranks do in a step (dataset digest, order hash, seed, epoch, consumed, world, batch, tail):
// equal on all ranks or something is wrong. For comparing over the caller's process group.
std::uint64_t StepDigest(std::string_view dataset_digest, const Order& order, const StepPlan& plan, std::uint64_t epoch,
                         std::uint64_t step);

}  // namespace shardpack::loader
