// Where the tasks of one call run.
#pragma once

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace shardpack {

// An arena of `threads` threads at most. TBB has no more than the process may use, and would say so on standard error.
inline tbb::task_arena ArenaOf(int threads) {
  const auto most = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return tbb::task_arena(std::clamp(threads, 1, static_cast<int>(most)));
}

// Says to the thread sanitizer, which cannot look into TBB's library, that what was done before a task was started is
// seen by the task, and what the task did by who waits for it. Costs nothing in other builds.
class HandOver {
 public:
  void BeforeStart() { Release(&started_); }
  void InTaskAtFirst() { Acquire(&started_); }
  void InTaskAtLast() { Release(&done_); }
  void AfterWait() { Acquire(&done_); }

 private:
#if defined(__SANITIZE_THREAD__)
  static void Release(void* at) { __tsan_release(at); }
  static void Acquire(void* at) { __tsan_acquire(at); }
#else
  static void Release(void*) {}
  static void Acquire(void*) {}
#endif
  char started_ = 0, done_ = 0;
};

// body(i) for i in [begin, end), in tasks of `grain` at most, on the threads of the calling arena.
template <typename Body>
void ParallelFor(std::uint64_t begin, std::uint64_t end, std::uint64_t grain, const Body& body) {
  HandOver hand_over;
  hand_over.BeforeStart();
  tbb::parallel_for(
      tbb::blocked_range<std::uint64_t>(begin, end, grain),
      [&](const auto& range) {
        hand_over.InTaskAtFirst();
        for (std::uint64_t i = range.begin(); i < range.end(); ++i) body(i);
        hand_over.InTaskAtLast();
      },
      tbb::simple_partitioner());
  hand_over.AfterWait();
}

}  // namespace shardpack
