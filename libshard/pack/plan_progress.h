// How far a scan and its plan are.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "shardpack/pack.h"

namespace shardpack {

// Calls PackOptions::progress from one thread at a time. Any thread.
class PlanProgress {
 public:
  explicit PlanProgress(const PackOptions& options) : report_(options.progress) {}

  void Report(std::string_view stage, std::uint64_t done, std::uint64_t total) {
    const std::lock_guard lock(mutex_);
    Say(stage, done, total);
  }
  // Not where another thread is reporting, nor soon after the last time.
  void ReportSometimes(std::string_view stage, std::uint64_t done, std::uint64_t total) {
    if (!report_) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && std::chrono::steady_clock::now() - last_ >= kInterval) Say(stage, done, total);
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{100};

  void Say(std::string_view stage, std::uint64_t done, std::uint64_t total) {
    if (!report_) return;
    last_ = std::chrono::steady_clock::now();
    PackProgress progress;
    progress.stage = stage;
    progress.inputs_done = done;
    progress.inputs_total = total;
    report_(progress);
  }

  const std::function<void(const PackProgress&)>& report_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace shardpack
