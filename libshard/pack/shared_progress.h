// Progress of work that several threads share.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

#include "shardpack/pack.h"

namespace shardpack {

// Adds up what all threads have done and reports the sum, from one thread at a time. Keeps a reference to `report`.
class SharedProgress {
 public:
  SharedProgress(const std::function<void(const PackProgress&)>& report, std::string_view stage, std::uint64_t records,
                 std::uint64_t bytes)
      : report_(report) {
    state_.stage = stage;
    state_.inputs_total = records;
    state_.bytes_total = bytes;
  }

  void Add(std::uint64_t records, std::uint64_t bytes) {
    if (!report_) return;
    const std::lock_guard lock(mutex_);
    state_.inputs_done += records;
    state_.bytes_done += bytes;
    report_(state_);
  }

 private:
  const std::function<void(const PackProgress&)>& report_;
  std::mutex mutex_;
  PackProgress state_;
};

}  // namespace shardpack
