#include "tools/shardinfo/describe.h"

#include <filesystem>

namespace shardpack::tools {
namespace {

// A shard alone has no manifest: its index is counted instead.
void CountRecords(const Dataset& dataset, Manifest& manifest) {
  manifest.bytes_in = 0;
  manifest.encodings.clear();
  manifest.codecs.clear();
  manifest.widths.clear();
  manifest.heights.clear();
  DatasetDigester digester;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    const RecordInfo info = dataset.Info(i);
    const Dataset::Place place = dataset.PlaceOf(i);
    manifest.bytes_in += info.raw_bytes;
    ++manifest.encodings[std::string(Name(info.encoding))];
    CodecCount& codec = manifest.codecs[std::string(Name(info.codec))];
    ++codec.records;
    codec.raw_bytes += info.raw_bytes;
    codec.stored_bytes += info.stored_bytes;
    ++manifest.widths[info.width];
    ++manifest.heights[info.height];
    digester.Add(dataset.Key(i), info.label, dataset.shard(place.shard).Metadata(place.record), info.encoding,
                 info.encoded_xxh3);
  }
  manifest.dataset_digest = digester.Finish(manifest.classes);
}

}  // namespace

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
  if (description.is_shard) CountRecords(dataset, description.manifest);
  for (std::size_t c = 0; c < description.manifest.classes.size(); ++c) {
    description.class_records.push_back(dataset.NumClassmates(static_cast<std::int64_t>(c)));
  }
  return description;
}

}  // namespace shardpack::tools
