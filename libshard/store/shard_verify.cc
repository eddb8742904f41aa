#include <algorithm>
#include <cassert>

#include "libshard/store/coding.h"
#include "libshard/store/reader_impl.h"

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
  void VerifyRecord(std::uint64_t i);
  void VerifyRecordHeader(std::uint64_t i, const Row& row, std::uint64_t begin);
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
  good_lookup_ = VerifySection(shard_.lookup);
  good_classmates_ = static_cast<bool>(VerifySection(shard_.labels) & VerifySection(shard_.classmates));
  VerifySection(shard_.dictionary);
  good_names_ = VerifySection(shard_.class_names);
  for (const SectionEntry& entry : shard_.section_entries) {
    if (!shard_.IsBound(entry)) VerifyUnknownSection(entry);
  }
}

void ShardVerifier::VerifyRecords() {
  for (std::uint64_t i = 0; i < shard_.footer.num_records; ++i) {
    if (!good_row_block_[i >> kArrayBlockShift]) {
      position_known_ = false;  // the rows that say where these records end are gone
      continue;
    }
    VerifyRecord(i);
  }
  if (position_known_ && position_ != shard_.footer.payload_end) {
    Add({}, position_, "size", "corrupt: bytes between the last record and the end of the payloads");
  }
}

void ShardVerifier::VerifyRecord(std::uint64_t i) {
  const Row row = shard_.RowAt(i);
  const std::uint64_t begin = row.info.offset - RecordHeaderBytes(row.key_bytes);
  if (position_known_ && begin != position_)
    Add(i, begin, "order", "corrupt: the record does not begin where the one before ends");
  const std::uint64_t end = row.info.offset + row.info.stored_bytes;
  position_ = AlignUp(end, kPayloadAlignment);
  position_known_ = true;
  VerifyRecordHeader(i, row, begin);
  VerifyHeapEntries(i);
  CheckZero(end, std::min(position_, shard_.footer.payload_end), i);
  VerifyPayload(i);
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
  if (good_heaps_) Try("range", [&] { wanted.key = shard_.Key(i); });
  if (found != wanted) Add(i, begin, "record-header", "corrupt: the record header and the index differ");
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
