// The last step of a plan: sorted entries in, planned inputs out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/pack/codec_sample.h"
#include "libshard/pack/plan_context.h"
#include "libshard/pack/plan_writer.h"
#include "libshard/pack/request_digest.h"

namespace shardpack {

// Two inputs of several sources have one key, and prefixes were not tried yet.
struct KeysClash {};

// Takes entries in their order; filters, limits, numbers and writes them, hashes the request and draws the sample.
class PlanOutput {
 public:
  PlanOutput(PlanContext& context, const std::filesystem::path& file);

  // Throws Error: kInvalidArgument (a key twice, or in the dataset already; an unknown class; a stream that would have
  // to be read backwards), kIo; KeysClash.
  void Take(std::string_view sort_key, std::string_view payload);

  std::uint64_t num_inputs() const { return num_inputs_; }
  std::uint64_t bytes() const { return bytes_; }
  PlanWriter& writer() { return writer_; }
  LowestHashes& sample() { return sample_; }  // without bytes, and without inputs of streams
  Digest128 FinishDigest() { return digester_.Finish(num_inputs_); }

 private:
  void CheckTwice(std::string_view payload, std::uint32_t key_skip);
  void CheckIsNew(const PlannedInput& input) const;
  void CheckGoesForward(const PlannedInput& input);
  void Write(const FoundEntry& entry, std::uint32_t key_skip, std::uint64_t hash);
  void Sample(const PlannedInput& input, std::uint64_t hash);

  PlanContext& context_;
  PlanWriter writer_;
  RequestDigester digester_;
  const bool sampling_;
  LowestHashes sample_;
  std::uint64_t seen_ = 0, num_inputs_ = 0, bytes_ = 0;
  std::string key_, metadata_;
  std::vector<std::uint64_t> last_sequence_;  // by source, of streams
  // The entry before, for the message about a key that comes twice.
  bool has_before_ = false;
  std::string key_before_, payload_before_;
  std::uint32_t skip_before_ = 0;
};

}  // namespace shardpack
