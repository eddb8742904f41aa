#include "libshard/pack/repair_neighbours.h"

#include <algorithm>

#include "libshard/pack/repair_record.h"
#include "shardpack/error.h"
#include "shardpack/image.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

bool Fits(const std::vector<RepairUnit>& units, Bytes dictionary) {
  const DecompressionDictionary words(dictionary);
  std::vector<std::byte> raw;
  return std::all_of(units.begin(), units.end(), [&](const RepairUnit& unit) {
    return InflateUnit(unit, &words, raw) && static_cast<std::uint8_t>(DetectEncoding(raw)) == unit.encoding;
  });
}

}  // namespace

Neighbours::Neighbours(const fs::path& shard) : shard_(shard) {
  const fs::path folder = shard.has_parent_path() ? shard.parent_path() : fs::path(".");
  const std::string name = shard.filename().native();
  try {
    manifest_ = Manifest::Load(folder);
    const auto named = std::find_if(manifest_->shards.begin(), manifest_->shards.end(),
                                    [&](const ShardEntry& entry) { return entry.file == name; });
    if (named != manifest_->shards.end()) entry_ = *named;
  } catch (const Error&) {
    // A shard alone, or beside a dataset that is damaged as well.
  }
  std::error_code error;
  for (fs::directory_iterator file(folder, error); !error && file != fs::directory_iterator(); file.increment(error)) {
    const std::string other = file->path().filename().native();
    if (other.ends_with(".shard") && other != name) siblings_.push_back(file->path());
  }
  std::sort(siblings_.begin(), siblings_.end());
}

std::vector<std::vector<std::string>> Neighbours::ClassNames() const {
  if (manifest_ && manifest_->label_kind != LabelKind::kClass) return {{}};
  std::vector<std::vector<std::string>> lists;
  if (manifest_) lists.push_back(manifest_->classes);
  for (const fs::path& sibling : siblings_) {
    try {
      const std::vector<std::string> names = ShardReader::Open(sibling).class_names();
      if (std::find(lists.begin(), lists.end(), names) == lists.end()) lists.push_back(names);
    } catch (const Error&) {
      // Damaged too.
    }
  }
  return lists;
}

std::vector<std::byte> Neighbours::Dictionary(const std::vector<RepairUnit>& units) const {
  for (const fs::path& sibling : siblings_) {
    try {
      const ShardReader reader = ShardReader::Open(sibling);
      const Bytes dictionary = reader.Dictionary();
      if (!dictionary.empty() && Fits(units, dictionary)) return {dictionary.begin(), dictionary.end()};
    } catch (const Error&) {
      // Damaged too.
    }
  }
  return {};
}

}  // namespace shardpack
