// What the steps of making a plan look at alike: scanning, sorting, writing.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/pack/plan_entry.h"
#include "libshard/pack/plan_file.h"
#include "libshard/pack/plan_filter.h"
#include "libshard/pack/plan_labels.h"
#include "libshard/pack/plan_progress.h"

namespace shardpack {

class PlanContext {
 public:
  PlanContext(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources, const PlanBase* base);

  const PackOptions& options;
  const std::vector<std::unique_ptr<Source>>& sources;
  const PlanBase* base;
  const InputFilter filter;
  LabelBook labels;
  const SortOrder order;
  PlanProgress progress;
  std::atomic<std::uint64_t> found{0};  // inputs, before any filter

  bool several() const { return sources.size() > 1; }
  // With several sources filters wait until it is known whether keys need a prefix; so does the error of a key that
  // comes twice. So what a key is does not depend on the share or the filters of a request.
  bool KeysAreSettled() const { return !several() || !prefixes_.empty(); }
  // From here on keys have their sources' names before them; `in_sort_keys`: those of the sort as well.
  void PrefixKeys();
  void SortKeysHavePrefixes() { in_sort_keys_ = true; }

  // Puts the whole key into `key` and returns how many bytes of it are the prefix.
  std::uint32_t PutKey(std::string_view sort_key, std::uint32_t source, std::string& key) const;
  PlannedInput ViewOf(const FoundEntry& entry, std::string_view key, std::uint32_t key_skip) const;
  std::string Describe(const PlannedInput& input) const { return sources[input.source]->Describe(input); }

 private:
  std::vector<std::string> prefixes_;  // by source; none where keys stand as they are
  bool in_sort_keys_ = false;
};

// `key` is of two inputs, which Source::Describe() calls `one` and `other`.
[[noreturn]] void ThrowTwice(std::string_view key, const std::string& one, const std::string& other);

}  // namespace shardpack
