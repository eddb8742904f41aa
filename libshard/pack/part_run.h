// One part's share of a plan: packs what is not finished of it.
#pragma once

#include <memory>
#include <vector>

#include "libshard/pack/bad_inputs.h"
#include "libshard/pack/batch_packer.h"
#include "libshard/pack/part.h"
#include "libshard/pack/shard_series.h"
#include "libshard/pack/work_folder.h"

namespace shardpack {

class PartRun {
 public:
  PartRun(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources, WorkFolder& work,
          const Plan& plan, const ShardRange& mine, int threads);

  // Whether the inputs of unfinished shards are still those of the plan, as far as that shows without reading them.
  // Throws Error with kInvalidArgument that names one that is not.
  void LookAtInputs() const;

  // Throws Error: kBadInput and kIo (bad inputs that are not tolerated, what the system refuses); Interrupted. Shards
  // that are finished by then stay.
  void Pack();

 private:
  class Batches;

  void LookAtStop() const {
    if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
  }
  void WarnOfGrowth() const;

  const PackOptions& options_;
  const std::vector<std::unique_ptr<Source>>& sources_;
  WorkFolder& work_;
  const Plan& plan_;
  const int threads_;
  BadInputs bad_;
  std::vector<std::uint64_t> todo_;  // of the plan, counted from 0
  PackProgress progress_;
};

}  // namespace shardpack
