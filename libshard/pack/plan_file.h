// The plan of a conversion: which input goes into which shard, fixed before any work, in one file that is mapped and
// read a shard at a time (its layout: plan_format.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libshard/pack/codec_choice.h"
#include "libshard/pack/source.h"
#include "shardpack/manifest.h"
#include "shardpack/pack.h"

namespace shardpack {

// What is true of a whole plan. Small: classes are the largest part.
struct PlanHead {
  std::map<std::string, std::string> options;  // ContentOptions()
  std::string name;                            // --name
  LabelKind label_kind = LabelKind::kClass;
  std::vector<std::string> classes;
  std::uint64_t num_inputs = 0, bytes = 0;  // bytes: of the inputs
  std::uint64_t ignored_files = 0;
  std::vector<std::string> warnings;
  CodecPlan codecs;
  // Of options, classes and every input's key, size, label and metadata. The same request gives the same digest on any
  // machine.
  Digest128 request_digest;
  // Where the sources lay when the plan was made, absolute and with their files' sizes for archives and lists: a rerun
  // with other sources scans again before it trusts the plan. Not part of the digest.
  std::vector<std::string> source_marks;
  // Limits of bad inputs, for a seal that is run alone. Not part of the digest.
  std::optional<std::uint64_t> max_bad;
  bool overwrite = false;
  // Of an append: the dataset it is added to, and the number of the first new shard.
  std::optional<Digest128> base_dataset;
  std::uint64_t first_shard = 0;
};

// A shard of the plan: its inputs in the order of their records. Views in `inputs` point into `text`.
struct PlannedShard {
  std::uint64_t number = 0;  // of the shard in the dataset
  std::vector<PlannedInput> inputs;
  std::uint64_t bytes = 0;
  std::unique_ptr<std::string> text;
};

// Reads a published plan. Const members from any thread.
class Plan {
 public:
  // Throws Error with kNotFound, kIo, kCorruption, kUnsupported (made by another version).
  static Plan Open(const std::filesystem::path& file);
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  const PlanHead& head() const noexcept;
  std::uint64_t num_shards() const noexcept;
  // Without reading the inputs. Precondition for all: s < num_shards(); the shard's number is head().first_shard + s.
  std::uint64_t NumInputs(std::uint64_t s) const;
  std::uint64_t NumBytes(std::uint64_t s) const;
  // Verifies the section's checksum, then decodes it. Throws Error with kCorruption.
  PlannedShard Shard(std::uint64_t s) const;
  // The first of the two alone.
  void CheckShard(std::uint64_t s) const;

 private:
  struct Impl;
  explicit Plan(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

// What an append is planned against.
struct PlanBase {
  const Manifest* manifest = nullptr;
  bool new_classes = false;
  std::function<bool(std::string_view key)> has_key;  // in the dataset already: an error that names the key
};

// Scans the sources, orders, filters and cuts, chooses codecs from a sample, and writes the plan to `file`, synced, not
// yet under its published name. Sorted runs that do not fit into options.memory_bytes / 4 go to files in `scratch` and
// are gone afterwards. Memory does not depend on the number of inputs.
//
// Throws Error: what the sources throw; kInvalidArgument: a class outside of the pinned ones, labels of different
// kinds, a key that comes twice (naming both inputs; with several sources only where prefixing by the sources' names
// does not help), compressed tars in another order than as listed; kBadInput: no input at all. Interrupted.
PlanHead WritePlan(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources,
                   const PlanBase* base, const std::filesystem::path& scratch, const std::filesystem::path& file);

// The options that change what is written, as they stand in plan and manifest; the versions of zstd, libjpeg-turbo and
// the other image libraries among them, so that parts with other versions refuse.
std::map<std::string, std::string> ContentOptions(const PackOptions& options);

// What tells two requests' sources apart without scanning them; see PlanHead::source_marks.
std::vector<std::string> SourceMarks(const PackOptions& options);

// Precedes every record of shard number `shard`.
std::uint64_t SyncMarker(const Digest128& request, std::uint64_t shard);

// A run of consecutive inputs of one shard that one task reads and writes at once: small enough to be many, large
// enough that handing them over costs nothing. Blocks of tiny records never cross it, so the cut is part of the format
// of a plan.
struct InputRange {
  std::uint64_t begin = 0, end = 0, bytes = 0;
  std::uint64_t size() const { return end - begin; }
};
std::vector<InputRange> CutIntoBatches(const std::vector<PlannedInput>& inputs);

}  // namespace shardpack
