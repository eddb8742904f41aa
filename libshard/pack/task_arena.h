// Where the tasks of one call run.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace shardpack {

// An arena of `threads` threads at most. TBB has no more than the process may use, and would say so on standard error.
inline tbb::task_arena ArenaOf(int threads) {
  const auto most = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return tbb::task_arena(std::clamp(threads, 1, static_cast<int>(most)));
}

}  // namespace shardpack
