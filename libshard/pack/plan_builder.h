// Makes a plan of what sources list. WritePlan() (plan_file.h) is this with the codecs and pictures of packing.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "libshard/pack/codec_sample.h"
#include "libshard/pack/plan_file.h"

namespace shardpack {

// What happens to the sample that codecs are chosen by.
struct SampleWork {
  std::function<SampleWorker()> make_worker;
  std::function<CodecPlan(const std::vector<SampleRecord>& sample, std::uint64_t records, std::uint64_t shards)> choose;
};

// As WritePlan(), on the threads of the calling task arena.
PlanHead BuildPlan(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources,
                   const PlanBase* base, const std::filesystem::path& scratch, const std::filesystem::path& file,
                   const SampleWork& work);

// The number after the largest of the dataset's shards: shards of which all inputs were bad have no file.
std::uint64_t FirstNewShard(const Manifest& manifest);

}  // namespace shardpack
