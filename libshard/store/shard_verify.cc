#include <algorithm>
#include <cassert>

#include "libshard/store/coding.h"
#include "libshard/store/reader_impl.h"
#include "libshard/store/record_block.h"

namespace shardpack {

// Walks one shard front to back and reports each fault once.
class ShardVerifier {
 public:
  using Report = std::function<void(const ShardReader::Fault&)>;
  using Visit = std::function<void(std::uint64_t, Bytes)>;

  ShardVerifier(const ShardReader::Impl& shard, const Report& report, const Visit& visit)
      : shard_(shard), file_(shard.file.bytes()), report_(report), visit_(visit), position_(kHeaderBytes) {}

  void Run() {
    VerifyBlocks();
    VerifyRecords();
    VerifyPadding();
    VerifyClassNames();
    VerifyLookup();
    VerifyClassmates();
  }

 private:
  void Add(std::optional<std::uint64_t> record, std::uint64_t offset, const char* kind, const std::string& message) {
    report_({record, offset, kind,
             Error(ErrorCode::kCorruption, Location{shard_.path_text, record, offset}, message).what()});
  }
  void Add(const Error& error, const char* kind) {
    report_({error.where().record, error.where().offset.value_or(0), kind, error.what()});
  }

  // `what` throws Error where something is wrong; true where nothing is.
  template <typename What>
  bool Try(const char* kind, What what) {
    try {
      what();
      return true;
    } catch (const Error& error) {
      Add(error, kind);
      return false;
    }
  }

  void CheckZero(std::uint64_t begin, std::uint64_t end, std::optional<std::uint64_t> record) {
    const Bytes gap = file_.subspan(begin, end - begin);
    const auto found = std::find_if(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; });
    if (found != gap.end())
      Add(record, begin + static_cast<std::uint64_t>(found - gap.begin()), "padding", "corrupt: padding is not zero");
  }

  void VerifyBlocks();
  void VerifyUnknownSection(const SectionEntry& entry);
  bool VerifySection(const BlockedSection& section);
  void VerifyRecords();
  void VerifyDictionaryCopy();
  void CompareDictionaryCopy(const RecordHeader& found);
  void VerifyRecord(std::uint64_t i);
  std::uint64_t BeginOf(std::uint64_t i, const Row& row);
  void VerifyPlace(std::uint64_t i, std::uint64_t begin, const RecordInfo& info);
  void VerifyRecordHeader(std::uint64_t i, const Row& row, std::uint64_t begin);
  std::uint64_t VerifyBlock(std::uint64_t i);
  void VerifyBlockHeader(std::uint64_t i, const RecordInfo& info, std::uint64_t begin);
  void VerifyBlockTable(std::uint64_t i, std::uint64_t end, bool from_start);
  void VerifyPayload(std::uint64_t i);
  void VerifyHeapEntries(std::uint64_t i);
  void VerifyPadding();
  void VerifyClassNames();
  void VerifyLookup();
  void VerifyClassmates();

  const ShardReader::Impl& shard_;
  const Bytes file_;
  const Report& report_;
  const Visit& visit_;
  std::uint64_t position_;  // where the next record header is expected
  bool position_known_ = true;
  std::vector<bool> good_row_block_;
  bool all_rows_ = true, good_lookup_ = true, good_classmates_ = true, good_heaps_ = true, good_names_ = true;
  bool good_dictionary_ = true;
  std::vector<std::byte> record_;
};

bool ShardVerifier::VerifySection(const BlockedSection& section) {
  bool good = true;
  for (std::uint64_t b = 0; b < section.entry().num_blocks; ++b) good &= Try("checksum", [&] { section.Verify(b); });
  return good;
}

void ShardVerifier::VerifyUnknownSection(const SectionEntry& entry) {
  VerifySection(BlockedSection(file_, entry, file_.data() + shard_.footer.block_table_offset, shard_.path_text));
}

void ShardVerifier::VerifyBlocks() {
  for (std::uint64_t b = 0; b < shard_.rows.entry().num_blocks; ++b) {
    good_row_block_.push_back(Try("checksum", [&] { shard_.rows.Verify(b); }));
    all_rows_ &= good_row_block_.back();
  }
  good_heaps_ = VerifySection(shard_.keys);
  good_heaps_ &= VerifySection(shard_.metadata_positions) & VerifySection(shard_.metadata);
  good_heaps_ &= VerifySection(shard_.side_data_positions) & VerifySection(shard_.side_data);
  good_heaps_ &= VerifySection(shard_.block_positions);
  good_lookup_ = VerifySection(shard_.lookup);
  good_classmates_ = static_cast<bool>(VerifySection(shard_.labels) & VerifySection(shard_.classmates));
  good_dictionary_ = VerifySection(shard_.dictionary);
  good_names_ = VerifySection(shard_.class_names);
  for (const SectionEntry& entry : shard_.section_entries) {
    if (!shard_.IsBound(entry)) VerifyUnknownSection(entry);
  }
}

void ShardVerifier::VerifyRecords() {
  VerifyDictionaryCopy();
  for (std::uint64_t i = 0; i < shard_.footer.num_records;) {
    if (!good_row_block_[i >> kArrayBlockShift]) {
      position_known_ = false;  // the rows that say where these records end are gone
      ++i;
    } else if (shard_.RowAt(i).info.codec == Codec::kZstdBlock) {
      i = VerifyBlock(i);
    } else {
      VerifyRecord(i);
      ++i;
    }
  }
  if (position_known_ && position_ != shard_.footer.payload_end) {
    Add({}, position_, "size", "corrupt: bytes between the last record and the end of the payloads");
  }
}

// Shards of earlier writers have none: there record 0 comes first.
void ShardVerifier::VerifyDictionaryCopy() {
  const std::uint64_t bytes = shard_.dictionary.bytes();
  const std::uint64_t end = kHeaderBytes + RecordHeaderBytes(0) + AlignUp(bytes, kPayloadAlignment);
  const std::uint64_t payload_end = shard_.footer.payload_end;
  if (bytes == 0 || end > payload_end) return;
  RecordHeader found;
  if (DecodeRecordHeader(file_.subspan(kHeaderBytes, payload_end - kHeaderBytes), found) == HeaderState::kGood) {
    if (found.record != kDictionaryRecord) return;
    CompareDictionaryCopy(found);
  } else {
    const bool knows_first = !good_row_block_.empty() && good_row_block_[0];
    if (knows_first && BeginOf(0, shard_.RowAt(0)) == kHeaderBytes) return;  // reported with record 0
    Add({}, kHeaderBytes, "record-header", "corrupt: the header of the copy of the dictionary");
  }
  position_ = end;
}

void ShardVerifier::CompareDictionaryCopy(const RecordHeader& found) {
  const std::uint64_t at = kHeaderBytes + RecordHeaderBytes(found), bytes = shard_.dictionary.bytes();
  RecordHeader wanted;
  wanted.sync_marker = shard_.header.sync_marker;
  wanted.record = kDictionaryRecord;
  wanted.stored_bytes = static_cast<std::uint32_t>(bytes);
  wanted.stored_xxh3_low = found.stored_xxh3_low;
  if (found != wanted)
    return Add({}, kHeaderBytes, "record-header",
               "corrupt: the header of the copy of the dictionary and the index differ");
  const Bytes copy = file_.subspan(at, bytes);
  if (static_cast<std::uint32_t>(Xxh3_64(copy)) != found.stored_xxh3_low) {
    Add({}, at, "checksum", "corrupt: checksum mismatch in the copy of the dictionary");
  } else if (good_dictionary_ && !std::ranges::equal(copy, shard_.dictionary.Range(0, bytes, {}, at))) {
    Add({}, at, "record-header", "corrupt: the copy of the dictionary and the dictionary differ");
  }
  CheckZero(at + bytes, at + AlignUp(bytes, kPayloadAlignment), {});
}

void ShardVerifier::VerifyRecord(std::uint64_t i) {
  const Row row = shard_.RowAt(i);
  const std::uint64_t begin = BeginOf(i, row);
  VerifyPlace(i, begin, row.info);
  VerifyRecordHeader(i, row, begin);
  VerifyHeapEntries(i);
  const bool in_no_block =
      !good_heaps_ || shard_.block_positions.size() == 0 || Load<std::uint64_t>(shard_.block_positions.At(i)) == 0;
  if (!in_no_block)
    Add(i, shard_.block_positions.OffsetOf(i), "range", "corrupt: a position in a block of a record that is in none");
  VerifyPayload(i);
}

// Where the header before the payload begins. It may have the metadata; those of earlier writers do not.
std::uint64_t ShardVerifier::BeginOf(std::uint64_t i, const Row& row) {
  const std::uint64_t offset = row.info.offset;
  RecordHeader found;
  const auto is_header = [&](std::uint64_t begin) {
    return DecodeRecordHeader(file_.subspan(begin, offset - begin), found) == HeaderState::kGood &&
           RecordHeaderBytes(found) == offset - begin;
  };
  if (position_known_ && position_ < offset && is_header(position_)) return position_;
  const std::uint64_t plain = offset - RecordHeaderBytes(row.key_bytes);
  if (!good_heaps_) return plain;
  try {
    const Bytes metadata = shard_.HeapEntry(i, shard_.metadata_positions, shard_.metadata);
    const std::uint64_t bytes = RecordHeaderBytes(row.key_bytes, metadata.size());
    if (bytes > offset - kHeaderBytes) return plain;
    if ((position_known_ && position_ == offset - bytes) || is_header(offset - bytes)) return offset - bytes;
  } catch (const Error&) {  // VerifyHeapEntries() says it
  }
  return plain;
}

void ShardVerifier::VerifyPlace(std::uint64_t i, std::uint64_t begin, const RecordInfo& info) {
  if (position_known_ && begin != position_)
    Add(i, begin, "order", "corrupt: the record does not begin where the one before ends");
  const std::uint64_t end = info.offset + info.stored_bytes;
  position_ = AlignUp(end, kPayloadAlignment);
  position_known_ = true;
  CheckZero(end, std::min(position_, shard_.footer.payload_end), i);
}

void ShardVerifier::VerifyRecordHeader(std::uint64_t i, const Row& row, std::uint64_t begin) {
  RecordHeader found;
  const HeaderState state = DecodeRecordHeader(file_.subspan(begin, row.info.offset - begin), found);
  if (state != HeaderState::kGood) {
    const bool checksum = state == HeaderState::kBadChecksum;
    return Add(
        i, begin, "record-header",
        checksum ? "corrupt: checksum mismatch in the record header" : "corrupt: the record header is malformed");
  }
  RecordHeader wanted;
  wanted.sync_marker = shard_.header.sync_marker;
  wanted.record = static_cast<std::uint32_t>(i);
  wanted.stored_bytes = row.info.stored_bytes;
  wanted.label = row.info.label;
  wanted.stored_xxh3_low = static_cast<std::uint32_t>(row.info.stored_xxh3);
  wanted.encoding = static_cast<std::uint8_t>(row.info.encoding);
  wanted.codec = static_cast<std::uint8_t>(row.info.codec);
  wanted.key = found.key;
  wanted.metadata = found.metadata;
  if (good_heaps_) {
    Try("range", [&] {
      wanted.key = shard_.Key(i);
      if (!found.metadata.empty())
        wanted.metadata = AsText(shard_.HeapEntry(i, shard_.metadata_positions, shard_.metadata));
    });
  }
  if (found != wanted) Add(i, begin, "record-header", "corrupt: the record header and the index differ");
}

// Records `i` to the last one that shares its frame; returns the number of the next.
std::uint64_t ShardVerifier::VerifyBlock(std::uint64_t i) {
  const RecordInfo info = shard_.RowAt(i).info;
  const std::uint64_t begin = info.offset - RecordHeaderBytes(0);
  const bool from_start = position_known_;
  VerifyBlockHeader(i, info, begin);
  VerifyPlace(i, begin, info);
  std::uint64_t end = i;
  for (; end < shard_.footer.num_records && good_row_block_[end >> kArrayBlockShift]; ++end) {
    const RecordInfo other = shard_.RowAt(end).info;
    if (other.codec != Codec::kZstdBlock || other.offset != info.offset) break;
    if (other.stored_bytes != info.stored_bytes || other.stored_xxh3 != info.stored_xxh3)
      Add(end, shard_.rows.OffsetOf(end), "order", "corrupt: records of one block differ in its size or checksum");
  }
  VerifyBlockTable(i, end, from_start);
  for (std::uint64_t k = i; k < end; ++k) {
    VerifyHeapEntries(k);
    VerifyPayload(k);
  }
  return end;
}

void ShardVerifier::VerifyBlockHeader(std::uint64_t i, const RecordInfo& info, std::uint64_t begin) {
  RecordHeader found, wanted;
  if (DecodeRecordHeader(file_.subspan(begin, info.offset - begin), found) != HeaderState::kGood)
    return Add(i, begin, "record-header", "corrupt: the header of the block");
  wanted.sync_marker = shard_.header.sync_marker;
  // Where the rows before are gone, records of this block may be among them.
  wanted.record =
      position_known_ ? static_cast<std::uint32_t>(i) : std::min(static_cast<std::uint32_t>(i), found.record);
  wanted.stored_bytes = info.stored_bytes;
  wanted.stored_xxh3_low = static_cast<std::uint32_t>(info.stored_xxh3);
  wanted.codec = static_cast<std::uint8_t>(Codec::kZstdBlock);
  if (found != wanted) Add(i, begin, "record-header", "corrupt: the header of the block and the index differ");
}

// `from_start`: record `i` is the first of its block. Says nothing where the frame is damaged, which each record does.
void ShardVerifier::VerifyBlockTable(std::uint64_t i, std::uint64_t end, bool from_start) {
  const RecordInfo first = shard_.RowAt(i).info;
  Bytes content;
  try {
    content = shard_.BlockContent(i, first);
  } catch (const Error&) {
    return;
  }
  const std::optional<std::vector<BlockEntry>> entries = DecodeBlock(content);
  if (!entries) return Add(i, first.offset, "record-header", "corrupt: the table of the block");
  const bool complete = end == shard_.footer.num_records || good_row_block_[end >> kArrayBlockShift];
  const bool fits = entries->size() >= end - i && (!from_start || !complete || entries->size() == end - i);
  if (!fits) return Add(i, first.offset, "record-header", "corrupt: the table of the block and the index differ");
  if (!good_heaps_) return;
  // Of a block whose first rows are gone the last are here.
  const std::uint64_t skipped = from_start ? 0 : entries->size() - (end - i);
  for (std::uint64_t k = i; k < end; ++k) {
    Try("range", [&] {
      const RecordInfo info = shard_.RowAt(k).info;
      const BlockEntry wanted{info.raw_bytes,
                              info.label,
                              static_cast<std::uint8_t>(info.encoding),
                              shard_.Key(k),
                              AsText(shard_.HeapEntry(k, shard_.metadata_positions, shard_.metadata)),
                              Load<std::uint64_t>(shard_.block_positions.At(k))};
      if ((*entries)[skipped + k - i] != wanted)
        Add(k, info.offset, "record-header", "corrupt: the table of the block and the index differ");
    });
  }
}

void ShardVerifier::VerifyHeapEntries(std::uint64_t i) {
  if (!good_heaps_) return;  // reported with the block
  Try("range", [&] {
    shard_.HeapEntry(i, shard_.metadata_positions, shard_.metadata);
    shard_.HeapEntry(i, shard_.side_data_positions, shard_.side_data);
  });
}

void ShardVerifier::VerifyPayload(std::uint64_t i) {
  if (Try("checksum", [&] { shard_.Read(i, record_); }) && visit_) visit_(i, record_);
}

void ShardVerifier::VerifyPadding() {
  const FileFooter& footer = shard_.footer;
  std::uint64_t end = footer.payload_end;
  for (const SectionEntry& entry : shard_.section_entries) {
    CheckZero(end, entry.offset, {});
    end = entry.offset + entry.bytes;
  }
  CheckZero(end, footer.block_table_offset, {});
  CheckZero(footer.block_table_offset + footer.num_blocks * kChecksumBytes, footer.section_table_offset, {});
  CheckZero(footer.section_table_offset + footer.num_sections * kSectionEntryBytes, file_.size() - kFooterBytes, {});
}

void ShardVerifier::VerifyClassNames() {
  if (good_names_) Try("range", [&] { shard_.ClassNames(); });
}

// Each record stands in the lookup once, under the hash of its key.
void ShardVerifier::VerifyLookup() {
  if (!good_lookup_ || !good_heaps_ || !all_rows_) return;
  std::vector<bool> seen(shard_.lookup.size());
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < shard_.lookup.size(); ++i) {
    const std::byte* const entry = shard_.lookup.At(i);
    const std::uint64_t hash = Load<std::uint64_t>(entry);
    const std::uint32_t record = Load<std::uint32_t>(entry + 8);
    if (hash < before || seen[record] || Xxh3_64(AsBytes(shard_.Key(record))) != hash) {
      Add(record, shard_.lookup.OffsetOf(i), "order", "corrupt: an entry of the key lookup is not that of its record");
    }
    seen[record] = true;
    before = hash;
  }
}

// The classmates of all labels, one after the other, are all records.
void ShardVerifier::VerifyClassmates() {
  if (!good_classmates_ || !all_rows_) return;
  std::uint64_t next = 0;
  for (std::uint64_t l = 0; l < shard_.labels.size(); ++l) {
    const std::byte* const entry = shard_.labels.At(l);
    const std::int64_t label = Load<std::int64_t>(entry);
    const std::uint64_t first = Load<std::uint64_t>(entry + 8), count = Load<std::uint64_t>(entry + 16);
    if (first != next)
      Add({}, shard_.labels.OffsetOf(l), "order", "corrupt: the classmates of a label do not follow those before");
    for (std::uint64_t k = first; k < first + count; ++k) {
      const std::uint32_t record = Load<std::uint32_t>(shard_.classmates.At(k));
      const bool ascending = k == first || Load<std::uint32_t>(shard_.classmates.At(k - 1)) < record;
      if (!ascending || shard_.RowAt(record).info.label != label) {
        Add(record, shard_.classmates.OffsetOf(k), "order", "corrupt: a classmate is out of order or of another label");
      }
    }
    next = first + count;
  }
  if (next != shard_.classmates.size())
    Add({}, shard_.labels.entry().offset, "order", "corrupt: records without a label's entry");
}

void ShardReader::VerifyAll(const std::function<void(const Fault&)>& report,
                            const std::function<void(std::uint64_t, Bytes)>& visit) const {
  ShardVerifier(*impl_, report, visit).Run();
}

}  // namespace shardpack
