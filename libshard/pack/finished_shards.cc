#include "libshard/pack/finished_shards.h"

#include <sys/stat.h>

#include <algorithm>
#include <unordered_set>

#include "libshard/pack/packing.h"
#include "libshard/pack/published_plan.h"

namespace shardpack {

std::optional<FinishedShard> FinishedOf(const std::filesystem::path& output, const Plan& plan, std::uint64_t s) {
  const PlanHead& head = plan.head();
  auto finished = LoadFinished(output / kWorkFolder, head.request_digest, head.first_shard + s);
  if (!finished || !finished->entry) return finished;
  struct stat status;
  const std::filesystem::path path = output / finished->entry->file;
  if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (static_cast<std::uint64_t>(status.st_size) != finished->entry->bytes) return std::nullopt;
  return finished;
}

bool IsSealed(const PlanHead& head, const Manifest& manifest) {
  if (!head.base_dataset) return manifest.request_digest == head.request_digest;
  return std::any_of(manifest.revisions.begin(), manifest.revisions.end(), [&](const Revision& revision) {
    return revision.command == "append" && revision.request == head.request_digest;
  });
}

bool IsCommitted(const std::filesystem::path& output, const Plan& plan, const Manifest& manifest) {
  if (!IsSealed(plan.head(), manifest)) return false;
  if (plan.head().base_dataset) return true;
  // A dataset that is to be replaced by one of the same request looks alike.
  std::unordered_set<std::string> named;
  for (const ShardEntry& entry : manifest.shards) named.insert(entry.file);
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
    const auto finished = FinishedOf(output, plan, s);
    if (!finished || (finished->entry && !named.contains(finished->entry->file))) return false;
  }
  return true;
}

bool IsCommitted(const WorkFolder& work) noexcept {
  try {
    const auto plan = OpenPublishedPlan(work.path());
    return plan && IsCommitted(work.output(), *plan, Manifest::Load(work.output()));
  } catch (...) {
    return false;
  }
}

}  // namespace shardpack
