// The last step: from finished shards to a dataset.
#pragma once

#include <functional>

#include "libshard/pack/bad_inputs.h"
#include "libshard/pack/plan_file.h"
#include "libshard/pack/work_folder.h"

namespace shardpack {

struct SealJob {
  WorkFolder& work;
  const Plan& plan;
  BadInputLimit limit;
  const std::function<void(const PackProgress&)>& progress;
  const std::atomic<bool>* stop = nullptr;
};

struct Sealed {
  Manifest manifest;
  std::vector<BadInput> first_bad;  // the first few
};

// Checks all shards against the journal, writes the ledger and commits the manifest. Precondition: every shard is
// finished. Throws Error: kBadInput and kIo (too many bad inputs; none is good), kCorruption (a shard was harmed since:
// it is struck from the journal, so that the next run does it again).
Sealed SealPlan(const SealJob& job);

}  // namespace shardpack
