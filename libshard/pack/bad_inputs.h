// How many bad inputs are tolerated.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "libshard/pack/journal.h"
#include "shardpack/pack.h"

namespace shardpack {

struct BadInputLimit {
  OnError on_error = OnError::kSkip;
  std::uint64_t most = ~std::uint64_t{0};
};
BadInputLimit LimitOf(const PackOptions& options, std::uint64_t inputs);
// The count or the share that was given, of both the smaller; nullopt where there is no limit.
std::optional<std::uint64_t> MostBad(const PackOptions& options, std::uint64_t inputs);

// Collects bad inputs in the order of the plan.
class BadInputs {
 public:
  explicit BadInputs(BadInputLimit limit) : limit_(limit) {}
  // Throws Error with kBadInput or kIo, naming the first that is not tolerated.
  void Add(const std::vector<BadInput>& bad);
  std::uint64_t count() const noexcept { return count_; }
  // The first few.
  const std::vector<BadInput>& first() const noexcept { return first_; }

 private:
  BadInputLimit limit_;
  std::uint64_t count_ = 0;
  std::vector<BadInput> first_;
};

// Of a request of which no input at all was good.
[[noreturn]] void ThrowNoGoodInput(const BadInput& first);

}  // namespace shardpack
