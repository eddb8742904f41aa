#include "tools/shardinfo/describe.h"

#include <cmath>
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

ChannelStatistics StatisticsOf(const ChannelSums& sums) {
  ChannelStatistics statistics;
  if (sums.pixels == 0) return statistics;
  const auto n = static_cast<long double>(sums.pixels);
  for (std::size_t c = 0; c < 3; ++c) {
    // n x squares - sum x sum in whole numbers: the difference of two large numbers would lose its digits.
    using Wide = unsigned __int128;
    const Wide spread = Wide{sums.pixels} * sums.sum_of_squares[c] - Wide{sums.sum[c]} * sums.sum[c];
    statistics.mean[c] = static_cast<double>(static_cast<long double>(sums.sum[c]) / n);
    statistics.deviation[c] = static_cast<double>(std::sqrt(static_cast<long double>(spread)) / n);
  }
  return statistics;
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
