#include "tools/shardinfo/describe.h"

#include <filesystem>

namespace shardpack::tools {
Spread SpreadOf(const Histogram& histogram) {
  if (histogram.empty()) return {};
  std::uint64_t count = 0, seen = 0;
  for (const auto& [value, records] : histogram) count += records;
  Spread spread{histogram.begin()->first, 0, histogram.rbegin()->first};
  for (const auto& [value, records] : histogram) {
    seen += records;
    if (seen * 2 >= count) {
      spread.median = value;
      break;
    }
  }
  return spread;
}

Description Describe(const std::string& path, const Dataset& dataset) {
  Description description;
  description.path = path;
  description.manifest = dataset.manifest();
  description.is_shard =
      std::filesystem::is_regular_file(path) && std::filesystem::path(path).filename() != kManifestName;
  for (std::size_t c = 0; c < description.manifest.classes.size(); ++c) {
    description.class_records.push_back(dataset.NumClassmates(static_cast<std::int64_t>(c)));
  }
  return description;
}

}  // namespace shardpack::tools
