// The structures of a record shard: each is encoded in one place and decoded and validated in one place.
// The text is docs/formats/record_shard.md; nothing here may say otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/record.h"

namespace shardpack {

inline constexpr std::uint16_t kFormatVersion = 1;
inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::size_t kRecordHeaderBytes = 32;  // before the key
inline constexpr std::size_t kRowBytes = 64;
inline constexpr std::size_t kSectionEntryBytes = 48;
inline constexpr std::size_t kFooterBytes = 128;
inline constexpr std::size_t kLookupEntryBytes = 16;
inline constexpr std::size_t kLabelEntryBytes = 24;
inline constexpr std::size_t kClassmateBytes = 4;
inline constexpr std::size_t kPositionBytes = 8;
inline constexpr std::size_t kChecksumBytes = 8;
inline constexpr std::uint64_t kPayloadAlignment = 8;
inline constexpr std::uint64_t kSectionAlignment = 64;
inline constexpr std::uint64_t kIndexAlignment = 4096;
inline constexpr unsigned kArrayBlockShift = 16;  // arrays lie in blocks of 65,536 entries
inline constexpr unsigned kHeapBlockShift = 20;   // heaps in blocks of 1 MiB
inline constexpr std::uint64_t kMaxSections = 4096;
inline constexpr std::size_t kMaxKeyBytes = 65535;

// Low 16 bits: a reader refuses those it does not know; high 16 bits: it ignores them.
inline constexpr std::uint32_t kRefuseUnknown = 0xFFFF;

inline constexpr std::size_t kSyncMarkerInHeader = 16, kSyncMarkerInFooter = 88;

struct FileHeader {
  std::uint16_t version = kFormatVersion;
  std::uint64_t sync_marker = 0;
};
std::array<std::byte, kHeaderBytes> Encode(const FileHeader& header);
// Tells apart what is no shard, what is damaged, and what is newer.
FileHeader DecodeHeader(Bytes file, const std::string& path);

// The number in the header before the copy of the dictionary.
inline constexpr std::uint32_t kDictionaryRecord = 0xFFFFFFFF;

struct RecordHeader {
  std::uint64_t sync_marker = 0;
  std::uint32_t record = 0;
  std::uint32_t stored_bytes = 0;
  std::int64_t label = 0;
  std::uint32_t stored_xxh3_low = 0;
  std::string_view key;
  std::uint8_t encoding = 0;
  std::uint8_t codec = 0;
  std::string_view metadata = {};  // so that `repair` brings it back; empty for none
  friend bool operator==(const RecordHeader&, const RecordHeader&) = default;
};
// With key, metadata, padding and checksum.
constexpr std::uint64_t RecordHeaderBytes(std::uint64_t key_bytes, std::uint64_t metadata_bytes = 0) {
  const std::uint64_t metadata_part = metadata_bytes == 0 ? 0 : (4 + metadata_bytes + 7) & ~std::uint64_t{7};
  return kRecordHeaderBytes + ((key_bytes + 7) & ~std::uint64_t{7}) + metadata_part + kChecksumBytes;
}
inline std::uint64_t RecordHeaderBytes(const RecordHeader& header) {
  return RecordHeaderBytes(header.key.size(), header.metadata.size());
}
void Encode(const RecordHeader& header, std::byte* to);  // writes RecordHeaderBytes(header) bytes
enum class HeaderState { kGood, kBadSize, kBadChecksum, kBadPadding };
// `bytes` begins with the header; its key and metadata are views into it.
HeaderState DecodeRecordHeader(Bytes bytes, RecordHeader& header);

struct Row {
  RecordInfo info;
  std::uint64_t key_offset = 0;  // in the key heap; below 2^48
  std::uint16_t key_bytes = 0;
};
void Encode(const Row& row, std::byte* to);
// Fields as they lie there.
Row DecodeRow(const std::byte* from);
// What every row of a shard must fit.
struct RowLimits {
  std::uint64_t payload_end = 0;
  std::uint64_t key_heap_bytes = 0;
  bool has_dictionary = false;
  bool has_block_positions = false;
};
struct RowFault {
  ErrorCode code = ErrorCode::kCorruption;
  const char* message = nullptr;  // null where there is none
};
// Without the place, which only a fault needs: a block has 65,536 rows.
RowFault ValidateRow(const std::byte* from, const RowLimits& limits) noexcept;

enum class SectionId : std::uint32_t {
  kRows = 1,
  kColumn = 2,  // may come several times, told apart by its column
  kKeyHeap = 3,
  kMetadataHeap = 4,
  kSideDataHeap = 5,
  kKeyLookup = 6,
  kLabels = 7,
  kClassmates = 8,
  kDictionary = 9,
  kSharedTables = 10,  // reserved
  kClassNames = 11,
};
inline constexpr std::uint32_t kMustUnderstand = 1;  // section flag
inline constexpr std::uint32_t kMetadataColumn = 1, kSideDataColumn = 2, kBlockColumn = 3;
inline constexpr std::uint16_t kColumnU64 = 1;  // column type

struct SectionEntry {
  std::uint32_t id = 0;
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t block_bytes = 0;
  std::uint32_t num_blocks = 0;
  std::uint32_t first_block = 0;  // in the block table
  std::uint32_t column = 0;
  std::uint16_t column_type = 0;
  std::uint16_t column_width = 0;

  friend bool operator==(const SectionEntry&, const SectionEntry&) = default;
};
void Encode(const SectionEntry& entry, std::byte* to);
std::string SectionName(const SectionEntry& entry);  // "rows", "column 1", ...

struct FileFooter {
  std::uint16_t version = kFormatVersion;
  std::uint64_t file_bytes = 0;
  std::uint64_t num_records = 0;
  std::uint64_t payload_end = 0;  // of the last payload with its padding
  std::uint64_t index_offset = 0;
  std::uint64_t block_table_offset = 0;
  std::uint64_t section_table_offset = 0;
  std::uint32_t num_blocks = 0;
  std::uint32_t num_sections = 0;
  std::uint64_t block_table_xxh3 = 0;
  std::uint64_t section_table_xxh3 = 0;
  std::uint64_t sync_marker = 0;
};
std::array<std::byte, kFooterBytes> Encode(const FileFooter& footer);
// Verified, and every range in it is inside the file and in order. Precondition: DecodeHeader() accepted the file.
FileFooter DecodeFooter(Bytes file, const std::string& path);

// The section table of a file with that footer, verified; every section lies in the index, aligned, none overlaps.
std::vector<SectionEntry> DecodeSections(Bytes file, const FileFooter& footer, const std::string& path);

}  // namespace shardpack
