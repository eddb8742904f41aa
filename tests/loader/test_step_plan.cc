#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <vector>

#include "shardpack/loader/order.h"

namespace shardpack::loader {
namespace {

StepPlan PlanOf(std::uint64_t n, std::uint32_t world, std::uint32_t batch, Tail tail, std::uint64_t consumed = 0) {
  StepPlan plan;
  plan.num_samples = n;
  plan.consumed = consumed;
  plan.world_size = world;
  plan.batch_size = batch;
  plan.tail = tail;
  return plan;
}

struct World {
  std::vector<std::uint64_t> valid;  // positions, all ranks and steps
  std::uint64_t padding = 0;
  std::uint64_t steps = 0;
};

// Runs all ranks through the steps [0, limit) and checks what must hold in each step.
World Walk(StepPlan plan, std::uint64_t limit = ~0ull) {
  World seen;
  seen.steps = std::min(plan.num_steps(), limit);
  for (std::uint64_t step = 0; step < seen.steps; ++step) {
    std::uint64_t valid_of_all = 0;
    for (plan.rank = 0; plan.rank < plan.world_size; ++plan.rank) {
      const Slice slice = plan.SliceOf(step);
      REQUIRE(slice.size == plan.batch_size);
      REQUIRE(slice.num_valid <= slice.size);
      valid_of_all += slice.num_valid;
      for (std::uint32_t k = 0; k < slice.size; ++k) {
        const std::uint64_t position = plan.PositionOf(slice, k);
        REQUIRE(position < plan.num_samples);
        if (k < slice.num_valid) {
          seen.valid.push_back(position);
        } else {
          ++seen.padding;
        }
      }
      REQUIRE(slice.consumed_after ==
              std::min(plan.num_samples, plan.consumed + (step + 1) * plan.world_size * plan.batch_size));
    }
    REQUIRE(valid_of_all == plan.GlobalValid(step));
  }
  return seen;
}

std::vector<std::uint64_t> Range(std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint64_t> range;
  for (std::uint64_t i = begin; i < end; ++i) range.push_back(i);
  return range;
}

void CheckGridPoint(std::uint64_t n, std::uint32_t world, std::uint32_t batch, std::uint64_t consumed) {
  CAPTURE(n, world, batch, consumed);
  const std::uint64_t global_batch = std::uint64_t{world} * batch, left = n - consumed;
  for (Tail tail : {Tail::kPad, Tail::kExact}) {
    World all = Walk(PlanOf(n, world, batch, tail, consumed));
    std::sort(all.valid.begin(), all.valid.end());
    REQUIRE(all.steps ==
            static_cast<std::uint64_t>(std::ceil(static_cast<double>(left) / static_cast<double>(global_batch))));
    REQUIRE(all.valid == Range(consumed, n));
    REQUIRE(all.padding == all.steps * global_batch - left);
  }
  World some = Walk(PlanOf(n, world, batch, Tail::kDrop, consumed));
  std::sort(some.valid.begin(), some.valid.end());
  REQUIRE(some.steps == left / global_batch);
  REQUIRE(some.valid == Range(consumed, consumed + some.steps * global_batch));
  REQUIRE(some.padding == 0);
}

TEST_CASE("ranks are equal, complete and, padding apart, disjoint", "[plan]") {
  for (std::uint64_t n = 0; n <= 200; ++n) {
    for (std::uint32_t world = 1; world <= 9; ++world) {
      for (std::uint32_t batch : {1u, 2u, 3u, 5u, 8u, 32u}) CheckGridPoint(n, world, batch, n % 3 == 0 ? n / 3 : 0);
    }
  }
  for (std::uint64_t n : {997ull, 1000ull, 4096ull, 10000ull}) {
    for (std::uint32_t world : {1u, 4u, 7u}) CheckGridPoint(n, world, 64, 13);
  }
}

TEST_CASE("padding wraps to the epoch's first positions, several times where it must", "[plan]") {
  StepPlan plan = PlanOf(3, 2, 4, Tail::kPad);
  std::vector<std::uint64_t> positions;
  for (plan.rank = 0; plan.rank < 2; ++plan.rank) {
    const Slice slice = plan.SliceOf(0);
    for (std::uint32_t k = 0; k < 4; ++k) positions.push_back(plan.PositionOf(slice, k));
  }
  CHECK(positions == std::vector<std::uint64_t>{0, 1, 2, 0, 1, 2, 0, 1});
}

TEST_CASE("an epoch stopped anywhere is completed exactly by any other world and batch size", "[plan]") {
  for (std::uint64_t n : {1ull, 10ull, 97ull, 200ull}) {
    for (std::uint32_t world : {1u, 2u, 3u, 8u}) {
      const StepPlan first = PlanOf(n, world, 3, Tail::kPad);
      for (std::uint64_t stop = 0; stop <= first.num_steps(); ++stop) {
        World before = Walk(first, stop);
        const std::uint64_t consumed = stop == 0 ? 0 : first.SliceOf(stop - 1).consumed_after;
        for (std::uint32_t other : {1u, 2u, 5u}) {
          World after = Walk(PlanOf(n, other, 7, Tail::kPad, consumed));
          std::vector<std::uint64_t> all = before.valid;
          all.insert(all.end(), after.valid.begin(), after.valid.end());
          std::sort(all.begin(), all.end());
          REQUIRE(all == Range(0, n));
        }
      }
    }
  }
}

TEST_CASE("from the same position with the same global batch a step holds the same samples at any world size",
          "[plan]") {
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::set<std::set<std::uint64_t>> steps;
    for (std::uint32_t world : {1u, 2u, 3u, 4u, 6u, 12u}) {
      StepPlan plan = PlanOf(100, world, 24 / world, Tail::kPad, 40);
      std::set<std::uint64_t> samples;
      for (plan.rank = 0; plan.rank < world; ++plan.rank) {
        const Slice slice = plan.SliceOf(step);
        for (std::uint32_t k = 0; k < slice.num_valid; ++k) samples.insert(plan.PositionOf(slice, k));
      }
      steps.insert(samples);
    }
    CHECK(steps.size() == 1);
  }
}

TEST_CASE("the formula holds for ten thousand million samples on 16384 ranks", "[plan]") {
  constexpr std::uint64_t kSamples = 10'000'000'000, kGlobal = 16384ull * 1024;
  StepPlan plan = PlanOf(kSamples, 16384, 1024, Tail::kPad);
  CHECK(plan.num_steps() == 597);  // ceil(1e10 / 16777216) = ceil(596.04)
  plan.rank = 16383;
  CHECK(plan.SliceOf(595).num_valid == 1024);
  CHECK(plan.SliceOf(596).num_valid == 0);
  CHECK(plan.SliceOf(596).consumed_after == kSamples);
  CHECK(plan.GlobalValid(596) == kSamples - 596 * kGlobal);
  CHECK(plan.PositionOf(plan.SliceOf(596), 1023) == 596 * kGlobal + kGlobal - 1 - kSamples);
  plan.batch_size = 4'000'000'000u;
  CHECK(plan.num_steps() == 1);
  CHECK(plan.PositionOf(plan.SliceOf(0), 3'999'999'999u) == (16384ull * 4'000'000'000u - 1) % kSamples);
}

TEST_CASE("no samples are no steps", "[plan]") {
  for (Tail tail : {Tail::kPad, Tail::kDrop, Tail::kExact}) CHECK(PlanOf(0, 3, 4, tail).num_steps() == 0);
}

TEST_CASE("the digest of a step is equal on all ranks and tells everything else apart", "[plan]") {
  const Order order{1000, Shuffle::kGlobal, 7};
  StepPlan plan = PlanOf(1000, 4, 8, Tail::kPad);
  const std::uint64_t digest = StepDigest("d", order, plan, 1, 3);
  plan.rank = 2;
  CHECK(StepDigest("d", order, plan, 1, 3) == digest);
  std::set<std::uint64_t> others = {digest};
  others.insert(StepDigest("e", order, plan, 1, 3));
  others.insert(StepDigest("d", {1000, Shuffle::kNone, 7}, plan, 1, 3));
  others.insert(StepDigest("d", {1000, Shuffle::kGlobal, 8}, plan, 1, 3));
  others.insert(StepDigest("d", order, plan, 2, 3));
  others.insert(StepDigest("d", order, plan, 1, 4));
  others.insert(StepDigest("d", order, PlanOf(1000, 8, 4, Tail::kPad), 1, 3));
  others.insert(StepDigest("d", order, PlanOf(1000, 4, 8, Tail::kDrop), 1, 3));
  others.insert(StepDigest("d", order, PlanOf(1000, 4, 8, Tail::kPad, 1), 1, 3));
  CHECK(others.size() == 9);
}

}  // namespace
}  // namespace shardpack::loader
