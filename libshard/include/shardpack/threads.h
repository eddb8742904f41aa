// How many threads this process may really use.
#pragma once

namespace shardpack {

// The smaller of the CPUs in this process's affinity mask and the CPU quota of its control group or any of that group's parents (version 1 and
// 2; a quota of 1.5 CPUs counts as 2). At least 1. Reads /proc and /sys each time; thread-safe.
int AvailableThreads();

}  // namespace shardpack
