#include "libshard/pack/plan_context.h"

#include <algorithm>

#include "shardpack/error.h"

namespace shardpack {
namespace {

std::string SourceName(const std::filesystem::path& path) {
  std::filesystem::path clean = std::filesystem::absolute(path).lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  return clean.filename().native();
}

bool AllFolders(const std::vector<std::unique_ptr<Source>>& sources) {
  return std::all_of(sources.begin(), sources.end(), [](const auto& s) { return s->kind() == SourceKind::kFolder; });
}

}  // namespace

PlanContext::PlanContext(const PackOptions& pack_options, const std::vector<std::unique_ptr<Source>>& all_sources,
                         const PlanBase* plan_base)
    : options(pack_options),
      sources(all_sources),
      base(plan_base),
      filter(pack_options),
      labels(pack_options, plan_base),
      order(pack_options, AllFolders(all_sources)),
      progress(pack_options) {}

void PlanContext::PrefixKeys() {
  for (std::size_t s = 0; s < sources.size(); ++s) prefixes_.push_back(SourceName(options.sources.at(s)) + "/");
}

std::uint32_t PlanContext::PutKey(std::string_view sort_key, std::uint32_t source, std::string& key) const {
  const std::string_view sorted = order.KeyOf(sort_key);
  if (prefixes_.empty()) {
    key.assign(sorted);
    return 0;
  }
  const std::string& prefix = prefixes_[source];
  key.assign(in_sort_keys_ ? std::string_view() : prefix).append(sorted);
  return static_cast<std::uint32_t>(prefix.size());
}

PlannedInput PlanContext::ViewOf(const FoundEntry& entry, std::string_view key, std::uint32_t key_skip) const {
  PlannedInput input;
  input.key = key;
  input.key_skip = key_skip;
  input.source = entry.source;
  input.size = entry.size;
  input.sequence = entry.sequence;
  input.metadata = entry.metadata;
  input.locator = entry.locator;
  input.bad = entry.bad;
  input.bad_code = entry.bad_code;
  return input;
}

void ThrowTwice(std::string_view key, const std::string& one, const std::string& other) {
  throw Error(ErrorCode::kInvalidArgument,
              "two inputs have the key " + Escaped(key) + ": " + Escaped(one) + " and " + Escaped(other));
}

}  // namespace shardpack
