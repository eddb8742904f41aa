#include "libshard/pack/journal.h"

namespace shardpack {
namespace {

void Add(Histogram& to, const Histogram& from) {
  for (const auto& [value, records] : from) to[value] += records;
}

// The value of an enumeration by its name; the names are few.
template <typename E>
std::size_t ValueOf(const std::string& name) {
  for (std::size_t value = 0; value < 256; ++value) {
    if (Name(static_cast<E>(value)) == name) return value;
  }
  return 0;
}

}  // namespace

void RecordCounts::Add(const RecordInfo& info, std::uint64_t input_bytes) {
  ++records;
  bytes_in += input_bytes;
  ++widths[info.width];
  ++heights[info.height];
  ++encodings[static_cast<std::uint8_t>(info.encoding)];
  CodecCount& codec = codecs[static_cast<std::uint8_t>(info.codec)];
  ++codec.records;
  codec.raw_bytes += info.raw_bytes;
  codec.stored_bytes += info.stored_bytes;
}

void RecordCounts::Add(const RecordCounts& other) {
  records += other.records;
  bytes_in += other.bytes_in;
  shardpack::Add(widths, other.widths);
  shardpack::Add(heights, other.heights);
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    encodings[i] += other.encodings[i];
    codecs[i].records += other.codecs[i].records;
    codecs[i].raw_bytes += other.codecs[i].raw_bytes;
    codecs[i].stored_bytes += other.codecs[i].stored_bytes;
  }
  if (!other.statistics) return;
  if (!statistics) statistics.emplace();
  statistics->pictures += other.statistics->pictures;
  statistics->pixels += other.statistics->pixels;
  for (std::size_t c = 0; c < 3; ++c) {
    statistics->sum[c] += other.statistics->sum[c];
    statistics->sum_of_squares[c] += other.statistics->sum_of_squares[c];
  }
}

void RecordCounts::PutInto(Manifest& manifest) const {
  manifest.records = records;
  manifest.bytes_in = bytes_in;
  manifest.widths = widths;
  manifest.heights = heights;
  manifest.encodings.clear();
  manifest.codecs.clear();
  for (std::size_t value = 0; value < encodings.size(); ++value) {
    if (encodings[value] > 0) manifest.encodings[std::string(Name(static_cast<Encoding>(value)))] = encodings[value];
    if (codecs[value].records > 0) manifest.codecs[std::string(Name(static_cast<Codec>(value)))] = codecs[value];
  }
  manifest.statistics = statistics;
}

RecordCounts RecordCounts::Of(const Manifest& manifest) {
  RecordCounts counts;
  counts.records = manifest.records;
  counts.bytes_in = manifest.bytes_in;
  counts.widths = manifest.widths;
  counts.heights = manifest.heights;
  for (const auto& [name, records] : manifest.encodings) counts.encodings[ValueOf<Encoding>(name)] += records;
  for (const auto& [name, codec] : manifest.codecs) counts.codecs[ValueOf<Codec>(name)] = codec;
  counts.statistics = manifest.statistics;
  return counts;
}

}  // namespace shardpack
