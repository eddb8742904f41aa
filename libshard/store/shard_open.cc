// Opening a shard: which section is which, and what the values of each must fit.
#include <algorithm>
#include <atomic>
#include <iterator>

#include "libshard/store/coding.h"
#include "libshard/store/reader_impl.h"

namespace shardpack {

namespace {

std::uint64_t NextId() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

ShardReader::Impl::Impl(const std::filesystem::path& shard, bool by_footer)
    : id(NextId()), path(shard), path_text(shard.string()), file(MappedFile::Open(shard)) {
  const Bytes bytes = file.bytes();
  header = ReadHeader(by_footer);
  footer = DecodeFooter(bytes, path_text);
  if (by_footer) header.sync_marker = footer.sync_marker;
  if (footer.sync_marker != header.sync_marker)
    Corrupt(bytes.size() - kFooterBytes, "corrupt: header and footer belong to different shards");
  section_entries = DecodeSections(bytes, footer, path_text);
  index_digest = Xxh3_128(bytes.subspan(footer.block_table_offset));
  BindSections();
  SetChecks();
}

FileHeader ShardReader::Impl::ReadHeader(bool by_footer) const {
  try {
    return DecodeHeader(file.bytes(), path_text);
  } catch (const Error& error) {
    if (!by_footer || error.code() != ErrorCode::kCorruption || file.bytes().size() < kHeaderBytes) throw;
    return {};
  }
}

void ShardReader::Impl::Corrupt(std::uint64_t offset, const std::string& message) const {
  throw Error(ErrorCode::kCorruption, Location{path_text, {}, offset}, message);
}

void ShardReader::Impl::BindSections() {
  for (const SectionEntry& entry : section_entries) Bind(entry);
  const std::uint64_t n = footer.num_records;
  const bool whole = rows.size() == n && lookup.size() == n && classmates.size() == n &&
                     (metadata.bytes() == 0 || metadata_positions.size() == n) &&
                     (side_data.bytes() == 0 || side_data_positions.size() == n) &&
                     (block_positions.bytes() == 0 || block_positions.size() == n);
  if (!whole) Corrupt(footer.section_table_offset, "corrupt: sections do not fit " + std::to_string(n) + " records");
}

BlockedSection* ShardReader::Impl::Column(std::uint32_t column) {
  switch (column) {
    case kMetadataColumn:
      return &metadata_positions;
    case kSideDataColumn:
      return &side_data_positions;
    case kBlockColumn:
      return &block_positions;
    default:
      return nullptr;
  }
}

void ShardReader::Impl::Bind(const SectionEntry& entry) {
  const auto bind = [&](BlockedSection& section, std::uint32_t unit_bytes, unsigned shift) {
    const bool fits = entry.block_bytes == std::uint64_t{unit_bytes} << shift && entry.bytes % unit_bytes == 0;
    if (!fits) Corrupt(footer.section_table_offset, "corrupt: section \"" + SectionName(entry) + "\" has a wrong size");
    if (section.entry().id != 0)
      Corrupt(footer.section_table_offset, "corrupt: section \"" + SectionName(entry) + "\" comes twice");
    section = BlockedSection(file.bytes(), entry, file.bytes().data() + footer.block_table_offset, unit_bytes, shift,
                             path_text);
  };
  if ((entry.flags & kRefuseUnknown & ~kMustUnderstand) != 0) {
    throw Error(ErrorCode::kUnsupported, Location{path_text, {}, footer.section_table_offset},
                "section \"" + SectionName(entry) + "\" has flags this program does not know");
  }
  switch (static_cast<SectionId>(entry.id)) {
    case SectionId::kRows:
      return bind(rows, kRowBytes, kArrayBlockShift);
    case SectionId::kKeyHeap:
      return bind(keys, 1, kHeapBlockShift);
    case SectionId::kMetadataHeap:
      return bind(metadata, 1, kHeapBlockShift);
    case SectionId::kSideDataHeap:
      return bind(side_data, 1, kHeapBlockShift);
    case SectionId::kKeyLookup:
      return bind(lookup, kLookupEntryBytes, kArrayBlockShift);
    case SectionId::kLabels:
      return bind(labels, kLabelEntryBytes, kArrayBlockShift);
    case SectionId::kClassmates:
      return bind(classmates, kClassmateBytes, kArrayBlockShift);
    case SectionId::kDictionary:
      return bind(dictionary, 1, kHeapBlockShift);
    case SectionId::kClassNames:
      return bind(class_names, 1, kHeapBlockShift);
    case SectionId::kColumn:
      if (BlockedSection* const column = Column(entry.column)) {
        if (entry.column_type != kColumnU64 || entry.column_width != kPositionBytes) {
          Corrupt(footer.section_table_offset, "corrupt: type of column " + std::to_string(entry.column));
        }
        return bind(*column, kPositionBytes, kArrayBlockShift);
      }
      break;
    case SectionId::kSharedTables:
      break;
  }
  if ((entry.flags & kMustUnderstand) != 0) {
    throw Error(ErrorCode::kUnsupported, Location{path_text, {}, footer.section_table_offset},
                "section \"" + SectionName(entry) + "\" is needed and not known to this program");
  }
}

bool ShardReader::Impl::IsBound(const SectionEntry& entry) const {
  const BlockedSection* const bound[] = {
      &rows,   &keys,   &metadata_positions, &metadata,   &side_data_positions, &side_data,
      &lookup, &labels, &classmates,         &dictionary, &class_names,         &block_positions};
  return std::any_of(std::begin(bound), std::end(bound),
                     [&](const BlockedSection* section) { return section->entry() == entry; });
}

void ShardReader::Impl::SetChecks() {
  const RowLimits limits{footer.payload_end, keys.bytes(), dictionary.bytes() != 0, block_positions.bytes() != 0};
  rows.SetCheck([this, limits](std::uint64_t block, Bytes bytes) {
    const std::uint64_t first = block << kArrayBlockShift;
    for (std::uint64_t i = 0; i < bytes.size() / kRowBytes; ++i) {
      const RowFault fault = ValidateRow(&bytes[i * kRowBytes], limits);
      if (fault.message != nullptr) throw Error(fault.code, At(first + i, rows.OffsetOf(first + i)), fault.message);
    }
  });
  lookup.SetCheck([this](std::uint64_t block, Bytes bytes) {
    for (std::uint64_t at = 0; at < bytes.size(); at += kLookupEntryBytes) {
      const bool good =
          Load<std::uint32_t>(&bytes[at + 8]) < footer.num_records && Load<std::uint32_t>(&bytes[at + 12]) == 0 &&
          (at == 0 || Load<std::uint64_t>(&bytes[at - kLookupEntryBytes]) <= Load<std::uint64_t>(&bytes[at]));
      if (!good)
        Corrupt(lookup.OffsetOf(block << kArrayBlockShift) + at,
                "corrupt: an entry of the key lookup is out of order or range");
    }
  });
  labels.SetCheck([this](std::uint64_t block, Bytes bytes) {
    for (std::uint64_t at = 0; at < bytes.size(); at += kLabelEntryBytes) {
      const std::uint64_t first = Load<std::uint64_t>(&bytes[at + 8]), count = Load<std::uint64_t>(&bytes[at + 16]);
      const bool ordered =
          at == 0 || Load<std::int64_t>(&bytes[at - kLabelEntryBytes]) < Load<std::int64_t>(&bytes[at]);
      if (!ordered || first > footer.num_records || count > footer.num_records - first) {
        Corrupt(labels.OffsetOf(block << kArrayBlockShift) + at,
                "corrupt: an entry of the labels is out of order or range");
      }
    }
  });
  classmates.SetCheck([this](std::uint64_t block, Bytes bytes) {
    for (std::uint64_t at = 0; at < bytes.size(); at += kClassmateBytes) {
      if (Load<std::uint32_t>(&bytes[at]) < footer.num_records) continue;
      Corrupt(classmates.OffsetOf(block << kArrayBlockShift) + at, "corrupt: a classmate is no record");
    }
  });
}

}  // namespace shardpack
