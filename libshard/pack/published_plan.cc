#include "libshard/pack/published_plan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "libshard/pack/finished_shards.h"
#include "libshard/pack/journal.h"
#include "libshard/pack/output_folder.h"
#include "libshard/pack/part.h"
#include "libshard/pack/request.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr auto kPoll = std::chrono::milliseconds(20);

}  // namespace

std::optional<Plan> OpenPublishedPlan(const fs::path& work) {
  const fs::path path = work / kPlanName;
  struct stat status;
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    ThrowSystemError(errno, "look at", path.native());
  }
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorCode::kInvalidArgument, Escaped(path.native()) + " is a link or no file: remove it");
  try {
    return Plan::Open(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return std::nullopt;  // removed in this moment
    throw;
  }
}

bool AnyShardFinished(const fs::path& work, const Plan& plan) {
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
    const auto finished = LoadFinished(work, plan.head().request_digest, plan.head().first_shard + s);
    if (finished && finished->entry) return true;
  }
  return false;
}

Planner::Planner(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources, const PlanBase* base,
                 WorkFolder& work)
    : options_(options),
      sources_(sources),
      base_(base),
      work_(work),
      file_(work.path() / ("plan." + work.token() + ".new")) {}

bool Planner::Trusts(const PlanHead& head) const {
  if (head.options != ContentOptions(options_) || head.name != options_.name) return false;
  if (head.base_dataset.has_value() != (base_ != nullptr)) return false;
  if (options_.classes && *options_.classes != head.classes) return false;
  return head.source_marks == SourceMarks(options_);
}

const PlanHead& Planner::Scan() {
  if (scanned_) return *scanned_;
  if (options_.progress) options_.progress({"scanning", 0, 0, 0, 0, 0});
  // Whether keys are new is looked at later: of a request that is done already they are not.
  PlanBase base;
  if (base_ != nullptr) {
    base = *base_;
    base.has_key = nullptr;
  }
  scanned_ = WritePlan(options_, sources_, base_ != nullptr ? &base : nullptr, work_.path(), file_);
  return *scanned_;
}

void Planner::WaitALittle() {
  if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
  if (options_.progress) options_.progress({"waiting", 0, 0, 0, 0, 0});
  std::this_thread::sleep_for(kPoll);
}

Plan Planner::Get() {
  FileLock lock = work_.OpenLock(kPlannerLock);
  for (;;) {
    if (auto plan = TryExisting()) return std::move(*plan);
    if (!lock.Try(FileLock::Mode::kAlone)) {
      WaitALittle();
      continue;
    }
    lock.WriteHolder();
    if (!OpenPublishedPlan(work_.path())) {
      Scan();
      made_here_ = Publish();
    }
    lock = work_.OpenLock(kPlannerLock);  // lets go
  }
}

std::optional<Plan> Planner::TryExisting() {
  try {
    std::optional<Plan> plan = OpenPublishedPlan(work_.path());
    if (!plan || made_here_) return plan;
    CheckShards(*plan);
    return Compare(std::move(*plan));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruption && error.code() != ErrorCode::kUnsupported) throw;
    if (made_here_) throw;
    ReplaceDamaged(error);
    return std::nullopt;
  }
}

// Throws where what this process will read of it is damaged: found in the middle of the work, it would be found again
// by every rerun.
void Planner::CheckShards(const Plan& plan) const {
  const ShardRange mine = CutIntoParts(plan, options_.part.count)[options_.part.index];
  for (std::uint64_t s = mine.begin; s < mine.end; ++s) {
    if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
    if (!FinishedOf(options_.output, plan, s)) plan.CheckShard(s);
  }
}

// The journal tells of its request: what was finished by this plan is found again where the new one is the same.
void Planner::ReplaceDamaged(const Error& error) {
  if (!work_.TryAlone()) {
    work_.ShareAgain();
    throw error;
  }
  unlink((work_.path() / kPlanName).c_str());
  work_.ShareAgain();
}

std::optional<Plan> Planner::Compare(Plan existing) {
  const PlanHead& head = existing.head();
  const bool same_base = base_ == nullptr ? !head.base_dataset : head.base_dataset == base_->manifest->dataset_digest;
  if (!options_.rescan && same_base && Trusts(head)) return existing;
  std::string difference = DifferenceOfOptions(head.options, head.name, options_);
  if (difference.empty() && !same_base) {
    difference = head.base_dataset && base_ != nullptr ? "the dataset that it adds to is another one now"
                 : base_ != nullptr                    ? "it replaces the dataset and adds nothing to it"
                                                       : "it adds to the dataset that lies there";
  }
  if (difference.empty()) {
    Scan();
    difference = DifferenceOfInputs(head.classes, head.request_digest, scanned_->classes, scanned_->request_digest);
  }
  if (difference.empty()) return PublishAgain();
  StartAnew(difference, AnyShardFinished(work_.path(), existing));
  return std::nullopt;
}

void Planner::RefuseOther(const std::string& difference) const {
  throw Error(ErrorCode::kInvalidArgument,
              Escaped(options_.output.native()) + " holds the unfinished work of another request: " + difference +
                  "; finish that one, or start anew with " + (base_ == nullptr ? "--overwrite" : "--rescan"));
}

void Planner::StartAnew(const std::string& difference, bool any_finished) {
  const bool asked = options_.overwrite || options_.rescan;
  if (any_finished && !asked) RefuseOther(difference);
  if (!work_.TryAlone()) {
    work_.ShareAgain();
    if (!asked) RefuseOther(difference);
    throw Error(ErrorCode::kIo, "another process" + work_.OtherProcess() + " is packing into " +
                                    Escaped(options_.output.native()) +
                                    " by another plan: wait for it or name another folder");
  }
  work_.RemovePlan();
  const OldDataset old = LookAtOutput(options_.output);
  if (old.damage.empty()) RemoveUnnamedShards(options_.output, old.manifest.value_or(Manifest{}));
  work_.ShareAgain();
}

// The plan of the same request, as the scan has just found it: where its inputs lie is no part of the request, and is
// another place in an archive that was made anew. What was finished stays so.
Plan Planner::PublishAgain() {
  const fs::path target = work_.path() / kPlanName;
  if (rename(file_.c_str(), target.c_str()) != 0) ThrowSystemError(errno, "rename into place", target.native());
  return Plan::Open(target);
}

// False where another process was first, on a file system without locks.
bool Planner::Publish() {
  const fs::path target = work_.path() / kPlanName;
  const bool first = link(file_.c_str(), target.c_str()) == 0;
  if (!first && errno != EEXIST) {
    // File systems without hard links have no such race either way: the plan is whole when it is renamed.
    if (errno != EPERM && errno != EOPNOTSUPP) ThrowSystemError(errno, "link into place", target.native());
    if (rename(file_.c_str(), target.c_str()) != 0) ThrowSystemError(errno, "rename into place", target.native());
  } else if (first) {
    unlink(file_.c_str());
  } else {
    return false;
  }
  // The folder is not synced: a plan that a power cut takes away is made again, the same.
  return true;
}

}  // namespace shardpack
