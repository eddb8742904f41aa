// Forcing Highway's instruction sets in turn.
#pragma once

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <catch2/catch.hpp>
#include <cstdint>

// Restores the processor's own choice.
struct TargetScope {
  explicit TargetScope(std::int64_t target) { Set(target); }
  ~TargetScope() { Set(0); }
  static void Set(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// Runs `check` on every instruction set of this processor.
template <typename Check>
void OnEveryTarget(Check&& check) {
  const std::int64_t all = hwy::SupportedTargets();
  int tried = 0;
  for (std::int64_t target = 1; target > 0; target <<= 1) {
    if (!(all & target)) continue;
    TargetScope scope(target);
    INFO(hwy::TargetName(target));
    REQUIRE(hwy::SupportedTargets() == target);
    check();
    ++tried;
  }
  CHECK(tried >= 1);
}
