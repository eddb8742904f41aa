#include "shardpack/threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace shardpack {
namespace {

int AffinityCpus() {
  // A mask of 1024 CPUs is too small for some machines: grow it until the kernel accepts its size.
  for (int cpus = 1024; cpus <= 1 << 16; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

std::optional<std::string> FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// Version 2: "max 100000" or "150000 100000" (quota and period in microseconds).
std::optional<double> QuotaV2(const std::string& folder) {
  const auto line = FirstLine(folder + "/cpu.max");
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  double quota = 0, period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// Version 1: a quota of -1 is none.
std::optional<double> QuotaV1(const std::string& folder) {
  const auto quota = FirstLine(folder + "/cpu.cfs_quota_us");
  const auto period = FirstLine(folder + "/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  const double q = std::atof(quota->c_str()), p = std::atof(period->c_str());
  if (q <= 0 || p <= 0) return std::nullopt;
  return q / p;
}

// The smallest quota of `group` and its parents below `mount`. Inside a container the group's path may not exist under
// the mount: then only the mount itself, which is the container's own group, counts.
template <typename Quota>
double SmallestQuota(const std::string& mount, std::string group, Quota quota) {
  double least = INFINITY;
  for (;;) {
    if (const auto found = quota(mount + group)) least = std::min(least, *found);
    if (group.empty() || group == "/") break;
    group.resize(group.rfind('/'));
  }
  return least;
}

double CgroupCpus() {
  double least = INFINITY;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/path" or "4:cpu,cpuacct:/path"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      least = std::min(least, SmallestQuota("/sys/fs/cgroup", group, QuotaV2));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      least = std::min(least, SmallestQuota("/sys/fs/cgroup/cpu", group, QuotaV1));
      least = std::min(least, SmallestQuota("/sys/fs/cgroup/cpu,cpuacct", group, QuotaV1));
    }
  }
  return least;
}

}  // namespace

int AvailableThreads() {
  const int cpus = AffinityCpus();
  const double quota = CgroupCpus();
  if (quota >= cpus) return std::max(1, cpus);
  return std::max(1, static_cast<int>(std::ceil(quota)));
}

}  // namespace shardpack
