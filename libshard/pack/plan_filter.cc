#include "libshard/pack/plan_filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "libshard/pack/c_locale.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

// The first hash that is at or above a fraction of 2^64; none where that is 1.
std::optional<std::uint64_t> FirstHashAt(double fraction) {
  const double at = std::ceil(std::ldexp(fraction, 64));
  if (at >= std::ldexp(1.0, 64)) return std::nullopt;
  return static_cast<std::uint64_t>(at);
}

// Byte for byte: under a UTF-8 locale `?` would match several bytes, and a key that is no UTF-8 nothing at all.
bool AnyMatches(const std::vector<std::string>& globs, const std::string& key) {
  const CLocale c_locale;
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return fnmatch(glob.c_str(), key.c_str(), 0) == 0; });
}

}  // namespace

InputFilter::InputFilter(const PackOptions& options) : include_(options.include), exclude_(options.exclude) {
  if (!options.share) return;
  const KeyShare& share = *options.share;
  if (!(share.begin >= 0 && share.begin <= share.end && share.end <= 1)) {
    throw Error(ErrorCode::kInvalidArgument, "the share " + Escaped(share.name) + " does not lie between 0 and 1");
  }
  const auto first = FirstHashAt(share.begin);
  none_ = !first;
  first_ = first.value_or(0);
  end_ = FirstHashAt(share.end);
}

std::uint64_t InputFilter::Hash(std::string_view key) { return Xxh3_64(AsBytes(key)); }

bool InputFilter::Takes(std::string_view key, std::uint64_t hash) const {
  if (none_ || hash < first_ || (end_ && hash >= *end_)) return false;
  if (include_.empty() && exclude_.empty()) return true;
  const std::string text(key);
  return (include_.empty() || AnyMatches(include_, text)) && !AnyMatches(exclude_, text);
}

}  // namespace shardpack
