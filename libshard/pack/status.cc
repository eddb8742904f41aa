#include <algorithm>

#include "libshard/pack/file_lock.h"
#include "libshard/pack/finished_shards.h"
#include "libshard/pack/output_folder.h"
#include "libshard/pack/part.h"
#include "libshard/pack/published_plan.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"

namespace shardpack {
namespace {

struct Shards {
  std::vector<bool> done, taken;  // taken: a running part will do it
};

Shards CountShards(const std::filesystem::path& output, const Plan& plan, PackStatus& status) {
  Shards shards;
  status.shards = plan.num_shards();
  status.inputs = plan.head().num_inputs;
  status.bytes = plan.head().bytes;
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
    const auto finished = FinishedOf(output, plan, s);
    shards.done.push_back(finished.has_value());
    if (!finished) continue;
    ++status.shards_done;
    status.inputs_done += plan.NumInputs(s);
    status.bytes_done += plan.NumBytes(s);
    status.bad_inputs += finished->bad.size();
  }
  shards.taken.resize(shards.done.size());
  return shards;
}

void AddPart(int folder, const std::string& name, const PartOfName& part, const Plan* plan, Shards& shards,
             PackStatus& status) {
  const auto lock = LookAtLock(folder, name);
  if (!lock) return;
  PackStatus::PartStatus out;
  out.index = part.index;
  out.count = part.count;
  out.running = lock->held;
  out.where = lock->holder;
  if (plan != nullptr) {
    const ShardRange range = CutIntoParts(*plan, part.count)[part.index];
    for (std::uint64_t s = range.begin; s < range.end; ++s) {
      ++out.shards;
      out.shards_done += shards.done[s] ? 1 : 0;
      if (out.running) shards.taken[s] = true;
    }
  }
  status.parts.push_back(std::move(out));
}

}  // namespace

PackStatus Status(const std::filesystem::path& output) {
  const OldDataset old = LookAtOutput(output);
  PackStatus status;
  status.sealed = old.manifest.has_value() && old.damage.empty();
  const std::filesystem::path work = output / kWorkFolder;
  const UniqueFd folder = OpenWorkFolder(work);
  const std::optional<Plan> plan = folder ? OpenPublishedPlan(work) : std::nullopt;
  if (!plan && !folder && !old.damage.empty()) {
    throw Error(ErrorCode::kCorruption, Location{output.native(), {}, {}}, old.damage);
  }
  if (!plan && !folder && !old.manifest) {
    throw Error(ErrorCode::kNotFound, "neither a dataset nor a conversion under way is in " + Escaped(output.native()));
  }
  Shards shards;
  if (plan) {
    status.planned = true;
    shards = CountShards(output, *plan, status);
    // Another dataset lies there until this one takes its place.
    status.sealed = status.sealed && IsCommitted(output, *plan, *old.manifest);
  } else if (status.sealed) {
    status.shards = status.shards_done = old.manifest->shards.size();
    status.inputs = status.inputs_done = old.manifest->records + old.manifest->bad_inputs;
    status.bytes = status.bytes_done = old.manifest->bytes_in;
    status.bad_inputs = old.manifest->bad_inputs;
  }
  if (!folder) return status;
  if (const auto planner = LookAtLock(folder.get(), kPlannerLock)) status.planning = planner->held;
  for (const std::string& name : NamesIn(folder.get(), work)) {
    if (const auto part = ParsePartLockName(name)) {
      AddPart(folder.get(), name, *part, plan ? &*plan : nullptr, shards, status);
    }
  }
  std::sort(status.parts.begin(), status.parts.end(),
            [](const auto& a, const auto& b) { return std::pair(a.count, a.index) < std::pair(b.count, b.index); });
  for (std::uint64_t s = 0; s < shards.done.size(); ++s) {
    if (!shards.done[s] && !shards.taken[s]) status.missing.push_back(plan->head().first_shard + s);
  }
  return status;
}

}  // namespace shardpack
