#include "shardpack/loader/order.h"

#include <algorithm>
#include <cassert>
#include <cstdio>

#include "shardpack/record.h"

namespace shardpack::loader {
namespace {

// Raise it with any change of Permutation, and keep the old one for as long as states of it are to be resumed.
constexpr char kPermutationVersion[] = "1";

std::string Hex64(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

std::string_view Name(Shuffle shuffle) {
  switch (shuffle) {
    case Shuffle::kGlobal:
      return "global";
    case Shuffle::kNone:
      return "none";
  }
  return "unknown";
}

std::string_view Name(Tail tail) {
  switch (tail) {
    case Tail::kPad:
      return "pad";
    case Tail::kDrop:
      return "drop";
    case Tail::kExact:
      return "exact";
  }
  return "unknown";
}

std::string Order::Hash() const {
  std::string text = "shardpack order 1\nshuffle=";
  text += Name(shuffle);
  if (shuffle == Shuffle::kGlobal) text += std::string("\npermutation=") + kPermutationVersion;
  return Hex64(Xxh3_64(AsBytes(text)));
}

std::uint64_t Order::SampleAt(std::uint64_t epoch, std::uint64_t p) const {
  assert(p < num_samples);
  return shuffle == Shuffle::kNone ? p : Permutation(num_samples, seed, epoch)(p);
}

std::uint64_t StepPlan::num_steps() const {
  assert(consumed <= num_samples);
  const std::uint64_t global_batch = std::uint64_t{world_size} * batch_size;
  const std::uint64_t left = num_samples - consumed;
  return left / global_batch + (tail != Tail::kDrop && left % global_batch != 0);
}

Slice StepPlan::SliceOf(std::uint64_t step) const {
  assert(step < num_steps() && rank < world_size);
  const std::uint64_t global_batch = std::uint64_t{world_size} * batch_size;
  const std::uint64_t start = consumed + step * global_batch;
  const std::uint64_t samples = std::min(global_batch, num_samples - start);
  const std::uint64_t before = std::uint64_t{rank} * batch_size;
  const std::uint64_t valid = samples > before ? std::min<std::uint64_t>(samples - before, batch_size) : 0;
  return {start + before, batch_size, static_cast<std::uint32_t>(valid), start + samples};
}

std::uint64_t StepPlan::PositionOf(const Slice& slice, std::uint32_t k) const {
  assert(k < slice.size);
  const std::uint64_t position = slice.begin + k;
  return position < num_samples ? position : position % num_samples;
}

std::uint64_t StepPlan::GlobalValid(std::uint64_t step) const {
  assert(step < num_steps());
  const std::uint64_t global_batch = std::uint64_t{world_size} * batch_size;
  return std::min(global_batch, num_samples - consumed - step * global_batch);
}

std::uint64_t StepDigest(std::string_view dataset_digest, const Order& order, const StepPlan& plan, std::uint64_t epoch,
                         std::uint64_t step) {
  std::string text = "shardpack step 1\n";
  text += dataset_digest;
  text += '\n' + order.Hash();
  const std::uint64_t global_batch = std::uint64_t{plan.world_size} * plan.batch_size;
  const std::uint64_t position = plan.consumed + step * global_batch;
  for (std::uint64_t value : {order.num_samples, order.seed, epoch, position, std::uint64_t{plan.world_size},
                              std::uint64_t{plan.batch_size}, plan.num_steps() - step}) {
    text += ' ' + std::to_string(value);
  }
  text += ' ';
  text += Name(plan.tail);
  return Xxh3_64(AsBytes(text));
}

}  // namespace shardpack::loader
