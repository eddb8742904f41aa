#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>

#include "libshard/pack/bad_inputs.h"
#include "libshard/pack/finished_shards.h"
#include "libshard/pack/ordered_work.h"
#include "libshard/pack/output_folder.h"
#include "libshard/pack/packing.h"
#include "libshard/pack/part.h"
#include "libshard/pack/part_run.h"
#include "libshard/pack/published_plan.h"
#include "libshard/pack/request.h"
#include "libshard/pack/seal.h"
#include "libshard/pack/task_arena.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "shardpack/threads.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A folder outside of the output, for plans that are looked at alone.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "shardpack-XXXXXX").native();
    if (mkdtemp(name.data()) == nullptr) ThrowSystemError(errno, "create folder", name);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove(path_ / kPlanName, ignored);
    fs::remove(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }
  fs::path plan() const { return path_ / kPlanName; }

 private:
  fs::path path_;
};

// What is known before work: shards with their records and bytes of input.
Manifest PlannedManifest(const Plan& plan) {
  const PlanHead& head = plan.head();
  Manifest manifest;
  manifest.name = head.name;
  manifest.options = head.options;
  manifest.label_kind = head.label_kind;
  manifest.classes = head.classes;
  manifest.receipts = head.codecs.receipts;
  manifest.request_digest = head.request_digest;
  manifest.records = head.num_inputs;
  manifest.bytes_in = head.bytes;
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
    manifest.shards.push_back({"", plan.NumInputs(s), plan.NumBytes(s), {}, {}});
  }
  return manifest;
}

void Take(const std::vector<BadInput>& bad, PackResult& result) {
  for (const BadInput& input : bad) {
    if (result.first_bad.size() < PackResult::kNamedBad) result.first_bad.push_back({input.key, input.reason});
  }
}

// One call of Convert(), MakePlan() or Append().
class Conversion {
 public:
  Conversion(const PackOptions& options, const PlanBase* base)
      : options_(options), base_(base), threads_(options.threads > 0 ? options.threads : AvailableThreads()) {
    CheckPackOptions(options);
  }

  PackResult Run(bool plan_only);

 private:
  bool Done(const OldDataset& old) const { return !options_.overwrite && (old.manifest || !old.damage.empty()); }
  void OpenOnce();
  void CheckBase(const OldDataset& old) const;
  void RefuseOtherOptions(const OldDataset& old) const;
  [[noreturn]] void Refuse(const std::string& difference) const;
  std::optional<PackResult> CompareWithDataset(const OldDataset& old);
  PackResult CompareReadOnly(const OldDataset& old);
  void CheckSame(const Manifest& old, const std::vector<std::string>& classes, const Digest128& request) const;
  void CheckSame(const Manifest& old, const PlanHead& head) const { CheckSame(old, head.classes, head.request_digest); }
  PackResult Complete(const Manifest& manifest) const;
  void LookForKeys(const Plan& plan) const;
  bool AppendedBefore(const OldDataset& old, const PlanHead& head) const;
  PackResult DryRun();
  PackResult Work(WorkFolder& work, bool plan_only);
  PackResult RunPart(WorkFolder& work, const Plan& plan, bool trusted, PackResult result);
  bool IsLate(const Plan& plan, const OldDataset& old) const;
  void Withdraw(WorkFolder& work, const Plan& plan, const Error& error, bool planned_here) const;
  void Warn(const PlanHead& head) const;
  PackResult Unsealed(const Plan& plan, const ShardRange& mine, PackResult result) const;

  const PackOptions& options_;
  const PlanBase* base_;
  const int threads_;
  std::vector<std::unique_ptr<Source>> sources_;
};

void Conversion::OpenOnce() {
  if (sources_.empty()) sources_ = OpenSources(options_);
}

void Conversion::Refuse(const std::string& difference) const {
  throw Error(ErrorCode::kInvalidArgument, Escaped(options_.output.native()) + " holds another dataset: " + difference +
                                               "; replace it with --overwrite or name another folder");
}

void Conversion::RefuseOtherOptions(const OldDataset& old) const {
  if (!old.damage.empty()) {
    throw Error(ErrorCode::kInvalidArgument, Escaped(options_.output.native()) + " holds a damaged dataset (" +
                                                 old.damage + "): make it anew with --overwrite");
  }
  const Manifest& manifest = *old.manifest;
  const std::string difference = DifferenceOfOptions(manifest.options, manifest.name, options_);
  if (!difference.empty()) Refuse(difference);
  if (manifest.bad_inputs > 0 && options_.on_error == OnError::kFail) {
    Refuse(std::to_string(manifest.bad_inputs) + " bad inputs were left out, which --on-error fail does not allow");
  }
}

void Conversion::CheckSame(const Manifest& old, const std::vector<std::string>& classes,
                           const Digest128& request) const {
  const std::string difference = DifferenceOfInputs(old.classes, old.request_digest, classes, request);
  if (!difference.empty()) Refuse(difference);
}

PackResult Conversion::Complete(const Manifest& manifest) const {
  PackResult result;
  result.manifest = manifest;
  result.sealed = result.already_complete = true;
  result.shards_done = result.shards_planned = manifest.shards.size();
  return result;
}

void Conversion::CheckBase(const OldDataset& old) const {
  if (base_ == nullptr) return;
  if (!old.damage.empty()) {
    throw Error(ErrorCode::kCorruption, Location{options_.output.native(), {}, {}}, "is damaged: " + old.damage);
  }
  if (old.manifest && old.manifest->dataset_digest == base_->manifest->dataset_digest) return;
  throw Error(ErrorCode::kIo,
              "the dataset in " + Escaped(options_.output.native()) + " was changed by another process: try again");
}

// Whether the dataset that lies there is what is asked for. Throws where it is another; its options were looked at.
std::optional<PackResult> Conversion::CompareWithDataset(const OldDataset& old) {
  OpenOnce();
  WorkFolder work(options_.output, WorkFolder::Use::kShared);
  Planner planner(options_, sources_, nullptr, work);
  const auto plan = OpenPublishedPlan(work.path());
  const bool leftover = plan && IsCommitted(options_.output, *plan, *old.manifest);
  if (!leftover || options_.rescan || !planner.Trusts(plan->head())) CheckSame(*old.manifest, planner.Scan());
  // The work of a killed run. What an unfinished append or overwrite has done stays.
  if ((!plan || leftover) && work.TryAlone()) {
    const OldDataset now = LookAtOutput(options_.output);
    if (now.manifest) RemoveUnnamedShards(options_.output, *now.manifest);
  }
  return Complete(*old.manifest);
}

// The same where nothing may be written.
PackResult Conversion::CompareReadOnly(const OldDataset& old) {
  const ScratchFolder scratch;
  CheckSame(*old.manifest, WritePlan(options_, sources_, nullptr, scratch.path(), scratch.plan()));
  return Complete(*old.manifest);
}

PackResult Conversion::DryRun() {
  OpenOnce();
  const ScratchFolder scratch;
  if (options_.progress) options_.progress({"scanning", 0, 0, 0, 0, 0});
  const PlanHead head = WritePlan(options_, sources_, base_, scratch.path(), scratch.plan());
  Warn(head);
  const Plan plan = Plan::Open(scratch.plan());
  PackResult result;
  result.manifest = PlannedManifest(plan);
  result.shards_planned = plan.num_shards();
  result.ignored_files = head.ignored_files;
  return result;
}

void Conversion::Warn(const PlanHead& head) const {
  if (options_.warn) std::for_each(head.warnings.begin(), head.warnings.end(), options_.warn);
}

PackResult Conversion::Run(bool plan_only) {
  const auto start = Clock::now();
  OldDataset old = LookAtOutput(options_.output);
  PackResult result;
  if (base_ == nullptr && Done(old)) RefuseOtherOptions(old);  // nothing need be scanned or created for that
  if (options_.dry_run) {
    result = DryRun();
    if (base_ == nullptr && Done(old)) {
      CheckSame(*old.manifest, result.manifest.classes, result.manifest.request_digest);
      result = Complete(*old.manifest);
    }
  } else if (base_ == nullptr && Done(old)) {
    try {
      result = *CompareWithDataset(old);
    } catch (const Error& error) {
      const bool read_only =
          error.code() == ErrorCode::kIo && !sources_.empty() && access(options_.output.c_str(), W_OK) != 0;
      if (!read_only) throw;
      result = CompareReadOnly(old);
    }
  } else {
    OpenOnce();  // before anything is created
    WorkFolder work(options_.output, WorkFolder::Use::kShared);
    result = Work(work, plan_only);
  }
  result.seconds = SecondsSince(start);
  return result;
}

bool Conversion::AppendedBefore(const OldDataset& old, const PlanHead& head) const {
  return base_ != nullptr && old.manifest && IsSealed(head, *old.manifest);
}

void Conversion::LookForKeys(const Plan& plan) const {
  if (base_ == nullptr || !base_->has_key) return;
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
    if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
    const PlannedShard shard = plan.Shard(s);
    for (const PlannedInput& input : shard.inputs) {
      if (!base_->has_key(input.key)) continue;
      throw Error(ErrorCode::kInvalidArgument, "the dataset has the key " + Escaped(input.key) + " of " +
                                                   Escaped(sources_[input.source]->Describe(input)) + " already");
    }
  }
}

PackResult Conversion::Work(WorkFolder& work, bool plan_only) {
  FileLock part_lock;
  if (!plan_only) {
    const std::string name = PartLockName(options_.part.index, options_.part.count);
    part_lock = work.OpenLock(name);
    if (!part_lock.TryForAMoment(FileLock::Mode::kAlone)) {
      const auto state = LookAtLock(work.fd(), name);
      const std::string who = state && !state->holder.empty() ? " (" + state->holder + ")" : "";
      const std::string what = options_.part.count > 1 ? "part " + std::to_string(options_.part.index) + " of " +
                                                             std::to_string(options_.part.count) + " "
                                                       : "";
      throw Error(ErrorCode::kIo, "another process" + who + " is packing " + what + "into " +
                                      Escaped(options_.output.native()) + ": wait for it or name another folder");
    }
    part_lock.WriteHolder();
  }
  // Again under the lock: another process may have sealed in between.
  const OldDataset old = LookAtOutput(options_.output);
  if (base_ == nullptr && Done(old)) {
    RefuseOtherOptions(old);
    return *CompareWithDataset(old);
  }
  CheckBase(old);
  Planner planner(options_, sources_, base_, work);
  if (base_ != nullptr) {
    // Killed between the commit and the clean-up, or done long ago.
    if (const auto plan = OpenPublishedPlan(work.path()); plan && IsCommitted(options_.output, *plan, *old.manifest)) {
      if (!work.TryAlone())
        throw Error(ErrorCode::kIo, "another process has just packed into " + Escaped(options_.output.native()) +
                                        ": run the command again");
      work.RemovePlan();
      RemoveUnnamedShards(options_.output, *old.manifest);
      work.ShareAgain();
    }
    if (!work.HasPlan()) {
      if (AppendedBefore(old, planner.Scan())) return Complete(*old.manifest);
      LookForKeys(Plan::Open(planner.file()));
    }
  }
  const Plan plan = planner.Get();
  if (planner.made_here() || options_.part.count == 1) Warn(plan.head());
  if (old.manifest && old.damage.empty() && IsCommitted(options_.output, plan, *old.manifest)) {
    return Complete(*old.manifest);
  }
  if (!plan_only && IsLate(plan, old) && planner.made_here() && work.TryAlone()) {
    work.RemovePlan();
    return Complete(*old.manifest);
  }
  PackResult result;
  result.ignored_files = plan.head().ignored_files;
  result.resumed = !planner.made_here();
  result.shards_planned = plan.num_shards();
  if (plan_only) {
    result.manifest = PlannedManifest(plan);
    return result;
  }
  return RunPart(work, plan, !planner.scanned(), std::move(result));
}

// A part without a shard that began when all others had overwritten and sealed: it must not begin to do so again.
bool Conversion::IsLate(const Plan& plan, const OldDataset& old) const {
  if (options_.part.count == 1 || base_ != nullptr || !old.manifest || !old.damage.empty()) return false;
  const ShardRange mine = CutIntoParts(plan, options_.part.count)[options_.part.index];
  return mine.begin == mine.end && IsSealed(plan.head(), *old.manifest);
}

// A rerun after the inputs were mended must not find the plan of the bad ones; what is finished is worth more.
void Conversion::Withdraw(WorkFolder& work, const Plan& plan, const Error& error, bool planned_here) const {
  if (error.code() != ErrorCode::kBadInput && !planned_here) return;
  if (AnyShardFinished(work.path(), plan) || !work.TryAlone()) return;
  work.RemovePlan();
  const OldDataset old = LookAtOutput(options_.output);
  if (old.damage.empty()) RemoveUnnamedShards(options_.output, old.manifest.value_or(Manifest{}));
}

// Of this part alone.
PackResult Conversion::Unsealed(const Plan& plan, const ShardRange& mine, PackResult result) const {
  const PlanHead& head = plan.head();
  RecordCounts counts;
  Manifest& manifest = result.manifest;
  for (std::uint64_t s = mine.begin; s < mine.end; ++s) {
    const auto finished = FinishedOf(options_.output, plan, s);
    if (!finished) continue;
    counts.Add(finished->counts);
    manifest.bad_inputs += finished->bad.size();
    Take(finished->bad, result);
    if (!finished->entry) continue;
    manifest.bytes_out += finished->entry->bytes;
    manifest.shards.push_back(*finished->entry);
  }
  counts.PutInto(manifest);
  manifest.name = head.name;
  manifest.options = head.options;
  manifest.label_kind = head.label_kind;
  manifest.classes = head.classes;
  manifest.receipts = head.codecs.receipts;
  manifest.request_digest = head.request_digest;
  return result;
}

PackResult Conversion::RunPart(WorkFolder& work, const Plan& plan, bool trusted, PackResult result) {
  const std::vector<ShardRange> parts = CutIntoParts(plan, options_.part.count);
  const ShardRange mine = parts[options_.part.index];
  PartRun run(options_, sources_, work, plan, mine, threads_);
  if (trusted) run.LookAtInputs();
  try {
    run.Pack();
    std::vector<bool> lacking(parts.size());
    for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
      if (FinishedOf(options_.output, plan, s)) {
        ++result.shards_done;
      } else {
        for (std::size_t p = 0; p < parts.size(); ++p) lacking[p] = lacking[p] || parts[p].Contains(s);
      }
    }
    if (result.shards_done < plan.num_shards()) {
      for (std::uint32_t p = 0; p < lacking.size(); ++p) {
        if (lacking[p]) result.missing_parts.push_back(p);
      }
      return Unsealed(plan, mine, std::move(result));
    }
    const SealJob job{work, plan, LimitOf(options_, plan.head().num_inputs), options_.progress, options_.stop};
    Sealed sealed = SealPlan(job);
    result.manifest = std::move(sealed.manifest);
    Take(sealed.first_bad, result);
    result.sealed = true;
    return result;
  } catch (const Error& error) {
    Withdraw(work, plan, error, !trusted);
    throw;
  }
}

}  // namespace

PackResult Pack(const PackOptions& options, const PlanBase* base) { return Conversion(options, base).Run(false); }

PackResult Convert(const PackOptions& options) { return Pack(options, nullptr); }

PackResult MakePlan(const PackOptions& options) { return Conversion(options, nullptr).Run(true); }

}  // namespace shardpack
