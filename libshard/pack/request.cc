#include "libshard/pack/request.h"

#include <algorithm>

#include "libshard/pack/part.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

// Whether `inner` lies below `outer` or is it, links resolved as far as the paths exist.
bool LiesInside(const fs::path& inner, const fs::path& outer) {
  std::error_code error;
  const fs::path a = fs::weakly_canonical(inner, error), b = fs::weakly_canonical(outer, error);
  if (error) return false;
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

// These may come from the manifest of a dataset that is added to.
void CheckPictureOptions(const PackOptions& options) {
  constexpr std::uint64_t kLeastDictionary = 256, kLargestDictionary = 128 << 20;
  constexpr int kHighestLevel = 22;
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); };
  if (options.resize) {
    if (options.images == ImageMode::kKeep || options.images == ImageMode::kLossless)
      refuse("to resize pictures, re-encode them: images jpeg or pixels");
    const ResizeTo& to = *options.resize;
    const bool short_side = to.short_side > 0 && to.width == 0 && to.height == 0;
    if (!short_side && (to.short_side > 0 || to.width == 0 || to.height == 0))
      refuse("pictures are resized to a short side, or to a width and a height, above 0");
  }
  if (options.quality < 1 || options.quality > 100) refuse("the quality must be 1 to 100");
  if (options.zstd_level && (*options.zstd_level < 1 || *options.zstd_level > kHighestLevel))
    refuse("the level of zstd must be 1 to 22");
  const std::uint64_t dictionary = options.dictionary_bytes.value_or(0);
  if (dictionary > 0 && (dictionary < kLeastDictionary || dictionary > kLargestDictionary))
    refuse("a zstd dictionary has 256 bytes to 128 MiB");
}

}  // namespace

std::string DifferenceOfOptions(const std::map<std::string, std::string>& was, const std::string& name_was,
                                const PackOptions& now) {
  const auto wanted = ContentOptions(now);
  std::string text;
  const auto say = [&](const std::string& name, const std::string& there, const std::string& here) {
    if (!text.empty()) text += ", ";
    text += name + " was " + (there.empty() ? "not given" : Escaped(there)) + " and is " +
            (here.empty() ? "not given" : Escaped(here)) + " now";
  };
  for (const auto& [name, value] : was) {
    const auto here = wanted.find(name);
    if (here == wanted.end() || here->second != value) say(name, value, here == wanted.end() ? "" : here->second);
  }
  for (const auto& [name, value] : wanted) {
    if (!was.contains(name)) say(name, "", value);
  }
  if (name_was != now.name) say("name", name_was, now.name);
  return text;
}

std::string DifferenceOfInputs(const std::vector<std::string>& classes_were, const Digest128& request_was,
                               const std::vector<std::string>& classes, const Digest128& request) {
  if (classes_were != classes) return "the classes differ";
  if (request_was != request) return "the inputs differ (their names, number, sizes, labels or metadata)";
  return "";
}

void CheckPackOptions(const PackOptions& options) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); };
  CheckPictureOptions(options);
  if (options.sources.empty()) refuse("no source is given");
  if (options.shard_bytes == 0) refuse("the shard size must be above 0");
  if (options.shard_records && *options.shard_records == 0) refuse("the number of records a shard must be above 0");
  if (options.max_bad_share && !(*options.max_bad_share >= 0 && *options.max_bad_share <= 1))
    refuse("the share of bad inputs must be 0% to 100%");
  if (options.part.count == 0 || options.part.index >= options.part.count) {
    refuse("there is no part " + std::to_string(options.part.index) + " of " + std::to_string(options.part.count));
  }
  if (options.part.count > kMostParts) {
    refuse(std::to_string(options.part.count) + " parts are more than the " + std::to_string(kMostParts) +
           " that a conversion may have");
  }
  for (const fs::path& source : options.sources) {
    std::error_code ignored;
    // A dataset or archive may lie beside what is made of it, but nothing is made inside a folder that is read.
    if (fs::is_directory(source, ignored) && LiesInside(options.output, source)) {
      refuse("the output " + Escaped(options.output.native()) + " lies inside the source " + Escaped(source.native()));
    }
  }
}

}  // namespace shardpack
