#include "libshard/pack/repair_record.h"

#include <limits>

#include "libshard/store/record_block.h"
#include "shardpack/error.h"
#include "shardpack/image.h"
#include "shardpack/transcode.h"

namespace shardpack {
namespace {

// The pictures were let in when they were packed.
constexpr ImageLimits kNoLimits{~std::uint64_t{0} >> 8};

}  // namespace

bool InflateUnit(const RepairUnit& unit, const DecompressionDictionary* dictionary, std::vector<std::byte>& raw) {
  const std::optional<std::uint64_t> size = FrameContentBytes(unit.payload);
  if (!size || *size > MaxRawBytes(unit.payload.size()) || *size > std::numeric_limits<std::uint32_t>::max())
    return false;
  return Decompress(unit.payload, *size, dictionary, raw);
}

struct RecordRebuilder::Impl {
  explicit Impl(const RebuildContext& shared) : context(shared), transcoder(kNoLimits) {}

  void FromIndex(const RepairUnit& unit, RebuiltUnit& out);
  void FromBlock(const RepairUnit& unit, RebuiltUnit& out);
  void FromHeader(const RepairUnit& unit, RebuiltUnit& out);
  void Describe(Bytes image, std::uint64_t number, RecordToWrite& record, RebuiltUnit& out);
  void AddSideData(Bytes image, std::uint64_t number, RecordToWrite& record, RebuiltUnit& out);

  const RebuildContext& context;
  Transcoder transcoder;
  std::vector<std::byte> baseline;
};

// The index is right about all but the payload.
void RecordRebuilder::Impl::FromIndex(const RepairUnit& unit, RebuiltUnit& out) {
  const ShardReader& index = *context.shard.index();
  const RecordInfo first = index.Info(unit.number);
  if (Xxh3_64(unit.payload) != first.stored_xxh3) {
    out.loss = "its payload is damaged";
    return;
  }
  for (std::uint64_t i = unit.number; i < unit.number + unit.count; ++i) {
    out.records.push_back({index.Info(i), index.Key(i), unit.payload, index.Metadata(i), index.SideData(i)});
    out.probed.push_back(true);
  }
}

void RecordRebuilder::Impl::FromBlock(const RepairUnit& unit, RebuiltUnit& out) {
  if (!InflateBlock(unit.payload, out.raw)) {
    out.loss = "the block does not decompress";
    return;
  }
  const std::optional<std::vector<BlockEntry>> entries = DecodeBlock(out.raw);
  if (!entries) {
    out.loss = "the block's own table is damaged";
    return;
  }
  out.side_data.resize(entries->size());
  for (const BlockEntry& entry : *entries) {
    RecordToWrite record;
    record.key = entry.key;
    record.metadata = AsBytes(entry.metadata);
    record.info.label = entry.label;
    record.info.encoding = static_cast<Encoding>(entry.encoding);
    record.info.codec = Codec::kZstdBlock;
    const Bytes image = Bytes(out.raw).subspan(entry.position, entry.raw_bytes);
    Describe(image, unit.number + out.records.size(), record, out);
    out.records.push_back(record);
  }
}

void RecordRebuilder::Impl::FromHeader(const RepairUnit& unit, RebuiltUnit& out) {
  RecordToWrite record;
  record.key = unit.key;
  record.metadata = unit.metadata;
  record.payload = unit.payload;
  record.info.label = unit.label;
  record.info.encoding = static_cast<Encoding>(unit.encoding);
  record.info.codec = static_cast<Codec>(unit.codec);
  record.info.stored_bytes = static_cast<std::uint32_t>(unit.payload.size());
  record.info.stored_xxh3 = Xxh3_64(unit.payload);
  Bytes image = unit.payload;
  if (record.info.codec != Codec::kStored) {
    const bool with_dictionary = record.info.codec == Codec::kZstdDictionary;
    if (with_dictionary && context.dictionary == nullptr) {
      out.loss = "the dictionary that it needs is lost";
      return;
    }
    if (!InflateUnit(unit, with_dictionary ? context.dictionary : nullptr, out.raw)) {
      out.loss = "its payload does not decompress";
      return;
    }
    image = out.raw;
  }
  out.side_data.resize(1);
  Describe(image, unit.number, record, out);
  out.records.push_back(record);
}

// What the header before a record does not say: it is asked from the picture, as it was when it was packed.
void RecordRebuilder::Impl::Describe(Bytes image, std::uint64_t number, RecordToWrite& record, RebuiltUnit& out) {
  record.info.raw_bytes = static_cast<std::uint32_t>(image.size());
  record.info.encoded_xxh3 = Xxh3_64(image);
  try {
    const ImageInfo info = ProbeImage(image, kNoLimits);
    record.info.width = info.width;
    record.info.height = info.height;
    record.info.channels = info.channels;
    record.info.bit_depth = info.bit_depth;
    record.info.orientation = info.orientation;
    out.probed.push_back(true);
  } catch (const Error&) {
    out.probed.push_back(false);
  }
  AddSideData(image, number, record, out);
}

// Where the index is lost, a JPEG has the positions of its rows again where it is what rewriting it gives: that is how
// those were made that had them.
void RecordRebuilder::Impl::AddSideData(Bytes image, std::uint64_t number, RecordToWrite& record, RebuiltUnit& out) {
  if (const ShardReader* index = context.shard.index(); index != nullptr && number < index->num_records()) {
    try {
      if (index->Info(number).encoded_xxh3 == record.info.encoded_xxh3) {
        record.side_data = index->SideData(number);
        return;
      }
    } catch (const Error&) {
      // Then as without an index.
    }
  }
  if (!context.side_data || record.info.encoding != Encoding::kJpeg) return;
  std::vector<std::byte>& rows = out.side_data[out.records.size()];
  try {
    const bool same = transcoder.JpegToBaseline(image, baseline, rows) && baseline.size() == image.size() &&
                      std::equal(baseline.begin(), baseline.end(), image.begin());
    if (same) record.side_data = rows;
  } catch (const Error&) {
    // No JPEG that can be rewritten: it never had any.
  }
}

RecordRebuilder::RecordRebuilder(const RebuildContext& context) : impl_(std::make_unique<Impl>(context)) {}
RecordRebuilder::~RecordRebuilder() = default;

void RecordRebuilder::Rebuild(const RepairUnit& unit, RebuiltUnit& out) {
  out.loss.clear();
  out.records.clear();
  out.probed.clear();
  out.raw.clear();
  out.side_data.clear();
  if (unit.by_index) return impl_->FromIndex(unit, out);
  if (!unit.good) {
    out.loss = "its payload is damaged or cut off";
  } else if (unit.codec > static_cast<std::uint8_t>(Codec::kZstdBlock) ||
             unit.encoding > static_cast<std::uint8_t>(Encoding::kPixels)) {
    out.loss = "an encoding or codec this program does not know";
  } else if (static_cast<Codec>(unit.codec) == Codec::kZstdBlock) {
    impl_->FromBlock(unit, out);
  } else {
    impl_->FromHeader(unit, out);
  }
}

}  // namespace shardpack
