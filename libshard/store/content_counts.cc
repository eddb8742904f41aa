#include "libshard/store/content_counts.h"

namespace shardpack {

void ContentCounts::Add(const ShardReader& shard) {
  std::uint64_t block = 0;  // offset of the block before: its bytes count once
  for (std::uint64_t i = 0; i < shard.num_records(); ++i) {
    const RecordInfo info = shard.Info(i);
    ++encodings_[static_cast<std::uint8_t>(info.encoding)];
    CodecCount& codec = codecs_[static_cast<std::uint8_t>(info.codec)];
    ++codec.records;
    codec.raw_bytes += info.raw_bytes;
    if (info.codec != Codec::kZstdBlock || info.offset != block) codec.stored_bytes += info.stored_bytes;
    block = info.codec == Codec::kZstdBlock ? info.offset : 0;
    widths_.Add(info.width);
    heights_.Add(info.height);
    digester_.Add(shard.Key(i), info.label, shard.Metadata(i), info.encoding, info.encoded_xxh3);
  }
}

void ContentCounts::Finish(Manifest& manifest) {
  manifest.encodings.clear();
  manifest.codecs.clear();
  for (std::size_t value = 0; value < encodings_.size(); ++value) {
    if (encodings_[value] > 0) manifest.encodings[std::string(Name(static_cast<Encoding>(value)))] = encodings_[value];
    if (codecs_[value].records > 0) manifest.codecs[std::string(Name(static_cast<Codec>(value)))] = codecs_[value];
  }
  manifest.widths = widths_.Sorted();
  manifest.heights = heights_.Sorted();
  manifest.dataset_digest = digester_.Finish(manifest.classes);
}

}  // namespace shardpack
