// The plan that all processes of a conversion work by.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "libshard/pack/plan_file.h"
#include "libshard/pack/work_folder.h"

namespace shardpack {

// The plan in the work folder; nullopt where there is none. Throws Error: kInvalidArgument where it is a link or no
// file, kCorruption, kUnsupported, kIo.
std::optional<Plan> OpenPublishedPlan(const std::filesystem::path& work);

// Finds or makes the plan of a request. Not thread-safe.
class Planner {
 public:
  Planner(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources, const PlanBase* base,
          WorkFolder& work);

  // Whether `head` is, as far as options and places of the sources tell, the plan of this request.
  bool Trusts(const PlanHead& head) const;

  // Scans into a file of this process; a second call gives the first's.
  const PlanHead& Scan();
  bool scanned() const noexcept { return scanned_.has_value(); }
  const std::filesystem::path& file() const noexcept { return file_; }  // of Scan()

  // The published plan: an older one or another process's where that is of this request, else one that is made here.
  // Where another request's is in the way, throws Error with kInvalidArgument (naming the difference) or kIo (others
  // work by it), or starts anew as options say.
  Plan Get();
  bool made_here() const noexcept { return made_here_; }

 private:
  std::optional<Plan> TryExisting();
  std::optional<Plan> Compare(Plan existing);
  void StartAnew(const std::string& difference, bool any_finished);
  void CheckShards(const Plan& plan) const;
  void ReplaceDamaged(const Error& error);
  bool Publish();
  Plan PublishAgain();
  void WaitALittle();
  [[noreturn]] void RefuseOther(const std::string& difference) const;

  const PackOptions& options_;
  const std::vector<std::unique_ptr<Source>>& sources_;
  const PlanBase* base_;
  WorkFolder& work_;
  std::filesystem::path file_;  // of Scan()
  std::optional<PlanHead> scanned_;
  bool made_here_ = false;
};

// Whether a shard with records was finished by the plan.
bool AnyShardFinished(const std::filesystem::path& work, const Plan& plan);

}  // namespace shardpack
