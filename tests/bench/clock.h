// What a measurement cost: wall time, CPU time of all threads, peak memory.
#pragma once

#include <sys/resource.h>

#include <chrono>

namespace shardpack::bench {

inline double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

inline double PeakRssMib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024.0;  // Linux counts in KiB
}

class Stopwatch {
 public:
  Stopwatch() : wall_(std::chrono::steady_clock::now()), cpu_(CpuSeconds()) {}
  double Seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count(); }
  double Cpu() const { return CpuSeconds() - cpu_; }

 private:
  std::chrono::steady_clock::time_point wall_;
  double cpu_;
};

}  // namespace shardpack::bench
