#include "libshard/store/record_format.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "libshard/store/coding.h"
#include "libshard/store/compression.h"

namespace shardpack {
namespace {

// A byte above 127 and both line ends: a transfer as text is seen at once.
constexpr char kHeaderMagic[] = "\x89SHPK\r\n\x1A";
constexpr char kFooterMagic[] = "\x89SHPKEND";

constexpr std::uint64_t kMaxHeaderBytes = 4096;
constexpr std::uint8_t kLastEncoding = static_cast<std::uint8_t>(Encoding::kPnm);
constexpr std::uint8_t kLastCodec = static_cast<std::uint8_t>(Codec::kZstdDictionary);

bool StartsWith(Bytes bytes, std::string_view text) { return AsText(bytes).starts_with(text); }

// Appends the checksum of what stands before it. Precondition: `bytes` ends with its place.
void Seal(std::span<std::byte> bytes) {
  const std::size_t end = bytes.size() - kChecksumBytes;
  Store(&bytes[end], Xxh3_64(bytes.first(end)));
}
bool IsSealed(Bytes bytes) {
  const std::size_t end = bytes.size() - kChecksumBytes;
  return Load<std::uint64_t>(&bytes[end]) == Xxh3_64(bytes.first(end));
}

[[noreturn]] void ThrowNoShard(Bytes file, const std::string& path) {
  const char* what = "";
  if (StartsWith(file, "\x89HDF\r\n\x1A\n")) what = ": the signature is that of HDF5";
  if (StartsWith(file, "\xFF\xD8\xFF")) what = ": a JPEG picture";
  if (StartsWith(file, "\x89PNG\r\n\x1A\n")) what = ": a PNG picture";
  throw Error(ErrorCode::kCorruption, Location{path, {}, {}}, std::string("not a shardpack shard") + what);
}

[[noreturn]] void Corrupt(const Location& where, const std::string& message) { throw Error(ErrorCode::kCorruption, where, message); }

void CheckVersion(std::uint16_t version, const Location& where) {
  if (version == 0) Corrupt(where, "version 0 was never written");
  if (version > kFormatVersion) {
    throw Error(ErrorCode::kUnsupported, where,
                "format version " + std::to_string(version) + " is newer than this program, which reads up to " + std::to_string(kFormatVersion));
  }
}

void CheckFlags(std::uint32_t flags, std::uint32_t known, const Location& where) {
  if ((flags & ~known & kRefuseUnknown) != 0) {
    throw Error(ErrorCode::kUnsupported, where, "flags " + std::to_string(flags) + " ask for what this program does not know");
  }
}

bool AllZero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

std::array<std::byte, kHeaderBytes> Encode(const FileHeader& header) {
  std::array<std::byte, kHeaderBytes> out{};
  std::memcpy(&out[0], kHeaderMagic, 8);
  Store(&out[8], header.version);
  Store(&out[10], static_cast<std::uint16_t>(kHeaderBytes));
  Store(&out[16], header.sync_marker);
  Seal(out);
  return out;
}

FileHeader DecodeHeader(Bytes file, const std::string& path) {
  const Location where{path, {}, 0};
  if (file.empty()) Corrupt(Location{path, {}, {}}, "the file is empty");
  const std::string_view magic(kHeaderMagic, 8);
  if (!StartsWith(file, magic.substr(0, std::min<std::size_t>(8, file.size())))) {
    // All of the magic but a bit or two: ours, and harmed.
    int wrong = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(8, file.size()); ++i) wrong += file[i] != std::byte(magic[i]);
    if (wrong <= 2 && file.size() >= kHeaderBytes) Corrupt(where, "corrupt: the signature of the header is damaged");
    ThrowNoShard(file, path);
  }
  if (file.size() < kHeaderBytes) Corrupt(where, "truncated: the file ends inside its header");
  const std::uint16_t header_bytes = Load<std::uint16_t>(&file[10]);
  if (header_bytes < kHeaderBytes || header_bytes > kMaxHeaderBytes || header_bytes > file.size()) Corrupt(where, "corrupt: length of the header");
  if (!IsSealed(file.first(header_bytes))) Corrupt(where, "corrupt: checksum mismatch in the header");
  FileHeader header;
  header.version = Load<std::uint16_t>(&file[8]);
  CheckVersion(header.version, where);
  if (header_bytes != kHeaderBytes) Corrupt(where, "corrupt: length of the header");
  CheckFlags(Load<std::uint32_t>(&file[12]), 0, where);
  header.sync_marker = Load<std::uint64_t>(&file[16]);
  if (!AllZero(file.subspan(24, 32))) Corrupt(where, "corrupt: reserved bytes of the header are not zero");
  return header;
}

void Encode(const RecordHeader& header, std::byte* to) {
  assert(header.key.size() <= kMaxKeyBytes);
  const std::size_t size = RecordHeaderBytes(header.key.size());
  std::memset(to + size - kChecksumBytes - 8, 0, 8);  // the padding of the key, if any, ends here
  Store(to, header.sync_marker);
  Store(to + 8, header.record);
  Store(to + 12, header.stored_bytes);
  Store(to + 16, header.label);
  Store(to + 24, header.stored_xxh3_low);
  Store(to + 28, static_cast<std::uint16_t>(header.key.size()));
  Store(to + 30, header.encoding);
  Store(to + 31, header.codec);
  std::memcpy(to + kRecordHeaderBytes, header.key.data(), header.key.size());
  Seal({to, size});
}

HeaderState DecodeRecordHeader(Bytes bytes, RecordHeader& header) {
  if (bytes.size() < kRecordHeaderBytes) return HeaderState::kBadSize;
  const std::byte* const from = bytes.data();
  const std::uint16_t key_bytes = Load<std::uint16_t>(from + 28);
  const std::uint64_t size = RecordHeaderBytes(key_bytes);
  if (size > bytes.size()) return HeaderState::kBadSize;
  if (!IsSealed(bytes.first(size))) return HeaderState::kBadChecksum;
  const std::size_t key_end = kRecordHeaderBytes + key_bytes;
  if (!AllZero(bytes.subspan(key_end, size - kChecksumBytes - key_end))) return HeaderState::kBadPadding;
  header.sync_marker = Load<std::uint64_t>(from);
  header.record = Load<std::uint32_t>(from + 8);
  header.stored_bytes = Load<std::uint32_t>(from + 12);
  header.label = Load<std::int64_t>(from + 16);
  header.stored_xxh3_low = Load<std::uint32_t>(from + 24);
  header.encoding = Load<std::uint8_t>(from + 30);
  header.codec = Load<std::uint8_t>(from + 31);
  header.key = AsText(bytes.subspan(kRecordHeaderBytes, key_bytes));
  return HeaderState::kGood;
}

void Encode(const Row& row, std::byte* to) {
  assert(row.key_offset < std::uint64_t{1} << 48);
  const RecordInfo& info = row.info;
  Store(to, info.offset);
  Store(to + 8, info.stored_bytes);
  Store(to + 12, info.raw_bytes);
  Store(to + 16, info.label);
  Store(to + 24, info.width);
  Store(to + 28, info.height);
  Store(to + 32, info.channels);
  Store(to + 33, info.bit_depth);
  Store(to + 34, static_cast<std::uint8_t>(info.encoding));
  Store(to + 35, static_cast<std::uint8_t>(info.codec));
  Store(to + 36, static_cast<std::uint32_t>(info.orientation));
  Store(to + 40, info.stored_xxh3);
  Store(to + 48, info.encoded_xxh3);
  Store(to + 56, row.key_offset << 16 | row.key_bytes);
}

Row DecodeRow(const std::byte* from) {
  Row row;
  RecordInfo& info = row.info;
  info.offset = Load<std::uint64_t>(from);
  info.stored_bytes = Load<std::uint32_t>(from + 8);
  info.raw_bytes = Load<std::uint32_t>(from + 12);
  info.label = Load<std::int64_t>(from + 16);
  info.width = Load<std::uint32_t>(from + 24);
  info.height = Load<std::uint32_t>(from + 28);
  info.channels = Load<std::uint8_t>(from + 32);
  info.bit_depth = Load<std::uint8_t>(from + 33);
  info.encoding = static_cast<Encoding>(Load<std::uint8_t>(from + 34));
  info.codec = static_cast<Codec>(Load<std::uint8_t>(from + 35));
  info.orientation = static_cast<Orientation>(Load<std::uint32_t>(from + 36) & 15);
  info.stored_xxh3 = Load<std::uint64_t>(from + 40);
  info.encoded_xxh3 = Load<std::uint64_t>(from + 48);
  const std::uint64_t key = Load<std::uint64_t>(from + 56);
  row.key_offset = key >> 16;
  row.key_bytes = static_cast<std::uint16_t>(key);
  return row;
}

RowFault ValidateRow(const std::byte* from, const RowLimits& limits) noexcept {
  const Row row = DecodeRow(from);
  const RecordInfo& info = row.info;
  const auto corrupt = [](const char* message) { return RowFault{ErrorCode::kCorruption, message}; };
  if ((Load<std::uint32_t>(from + 36) & ~std::uint32_t{15} & kRefuseUnknown) != 0) return {ErrorCode::kUnsupported, "flags this program does not know"};
  if (static_cast<std::uint8_t>(info.encoding) > kLastEncoding || static_cast<std::uint8_t>(info.codec) > kLastCodec) {
    return {ErrorCode::kUnsupported, "an encoding or codec this program does not know"};
  }
  if (row.key_offset > limits.key_heap_bytes || row.key_bytes > limits.key_heap_bytes - row.key_offset) return corrupt("corrupt: the key leaves its heap");
  const std::uint64_t smallest = kHeaderBytes + RecordHeaderBytes(row.key_bytes);
  if (info.offset % kPayloadAlignment != 0 || info.offset < smallest || info.offset > limits.payload_end ||
      info.stored_bytes > limits.payload_end - info.offset) {
    return corrupt("corrupt: the payload leaves its region");
  }
  if (info.orientation < 1 || info.orientation > 8) return corrupt("corrupt: the orientation is not one of 1 to 8");
  if (info.codec == Codec::kStored) {
    if (info.raw_bytes != info.stored_bytes || info.encoded_xxh3 != info.stored_xxh3) return corrupt("corrupt: sizes or hashes of a stored record differ");
  } else if (info.raw_bytes > MaxRawBytes(info.stored_bytes)) {
    return corrupt("corrupt: the payload is too short for its raw size");
  }
  if (info.codec == Codec::kZstdDictionary && !limits.has_dictionary) return corrupt("corrupt: the shard has no dictionary");
  return {};
}

void Encode(const SectionEntry& entry, std::byte* to) {
  Store(to, entry.id);
  Store(to + 4, entry.flags);
  Store(to + 8, entry.offset);
  Store(to + 16, entry.bytes);
  Store(to + 24, entry.block_bytes);
  Store(to + 32, entry.num_blocks);
  Store(to + 36, entry.first_block);
  Store(to + 40, entry.column);
  Store(to + 44, entry.column_type);
  Store(to + 46, entry.column_width);
}

std::string SectionName(const SectionEntry& entry) {
  switch (static_cast<SectionId>(entry.id)) {
    case SectionId::kRows: return "rows";
    case SectionId::kColumn:
      if (entry.column == kMetadataColumn) return "metadata positions";
      if (entry.column == kSideDataColumn) return "side-data positions";
      return "column " + std::to_string(entry.column);
    case SectionId::kKeyHeap: return "keys";
    case SectionId::kMetadataHeap: return "metadata";
    case SectionId::kSideDataHeap: return "side data";
    case SectionId::kKeyLookup: return "key lookup";
    case SectionId::kLabels: return "labels";
    case SectionId::kClassmates: return "classmates";
    case SectionId::kDictionary: return "dictionary";
    case SectionId::kSharedTables: return "shared tables";
    case SectionId::kClassNames: return "class names";
  }
  return "section " + std::to_string(entry.id);
}

std::array<std::byte, kFooterBytes> Encode(const FileFooter& footer) {
  std::array<std::byte, kFooterBytes> out{};
  std::memcpy(&out[0], kFooterMagic, 8);
  Store(&out[8], footer.version);
  Store(&out[10], static_cast<std::uint16_t>(kFooterBytes));
  Store(&out[16], footer.file_bytes);
  Store(&out[24], footer.num_records);
  Store(&out[32], footer.payload_end);
  Store(&out[40], footer.index_offset);
  Store(&out[48], footer.block_table_offset);
  Store(&out[56], footer.section_table_offset);
  Store(&out[64], footer.num_blocks);
  Store(&out[68], footer.num_sections);
  Store(&out[72], footer.block_table_xxh3);
  Store(&out[80], footer.section_table_xxh3);
  Store(&out[88], footer.sync_marker);
  Seal(out);
  return out;
}

namespace {

// Regions in order, each aligned, the last ending where the footer begins.
void ValidateFooter(const FileFooter& f, std::uint64_t file_bytes, const Location& where) {
  const std::uint64_t footer_offset = file_bytes - kFooterBytes;
  if (f.file_bytes != file_bytes) Corrupt(where, "corrupt: the footer belongs to a file of " + std::to_string(f.file_bytes) + " bytes");
  if (f.num_records >= std::uint64_t{1} << 32) Corrupt(where, "corrupt: number of records");
  if (f.num_sections > kMaxSections) Corrupt(where, "corrupt: number of sections");
  const bool ordered = kHeaderBytes <= f.payload_end && f.payload_end <= f.index_offset && f.index_offset <= f.block_table_offset &&
                       f.block_table_offset <= f.section_table_offset && f.section_table_offset <= footer_offset;
  const bool aligned = f.payload_end % kPayloadAlignment == 0 && f.index_offset % kIndexAlignment == 0 &&
                       f.block_table_offset % kSectionAlignment == 0 && f.section_table_offset % kSectionAlignment == 0;
  if (!ordered || !aligned) Corrupt(where, "corrupt: the footer's regions are out of order");
  if (f.num_blocks * kChecksumBytes > f.section_table_offset - f.block_table_offset) Corrupt(where, "corrupt: the block table leaves its place");
  if (f.num_sections * kSectionEntryBytes > footer_offset - f.section_table_offset) Corrupt(where, "corrupt: the section table leaves its place");
}

}  // namespace

FileFooter DecodeFooter(Bytes file, const std::string& path) {
  assert(file.size() >= kHeaderBytes);
  if (file.size() < kHeaderBytes + kFooterBytes) Corrupt(Location{path, {}, file.size()}, "truncated: the file ends without a footer");
  const std::uint64_t offset = file.size() - kFooterBytes;
  const Location where{path, {}, offset};
  const Bytes bytes = file.subspan(offset);
  if (!StartsWith(bytes, std::string_view(kFooterMagic, 8))) {
    Corrupt(where, IsSealed(bytes) ? "corrupt: the signature of the footer is damaged" : "truncated or corrupt: the file does not end with a footer");
  }
  if (Load<std::uint16_t>(&bytes[10]) != kFooterBytes) Corrupt(where, "corrupt: length of the footer");
  if (!IsSealed(bytes)) Corrupt(where, "corrupt: checksum mismatch in the footer");
  FileFooter footer;
  footer.version = Load<std::uint16_t>(&bytes[8]);
  CheckVersion(footer.version, where);
  CheckFlags(Load<std::uint32_t>(&bytes[12]), 0, where);
  footer.file_bytes = Load<std::uint64_t>(&bytes[16]);
  footer.num_records = Load<std::uint64_t>(&bytes[24]);
  footer.payload_end = Load<std::uint64_t>(&bytes[32]);
  footer.index_offset = Load<std::uint64_t>(&bytes[40]);
  footer.block_table_offset = Load<std::uint64_t>(&bytes[48]);
  footer.section_table_offset = Load<std::uint64_t>(&bytes[56]);
  footer.num_blocks = Load<std::uint32_t>(&bytes[64]);
  footer.num_sections = Load<std::uint32_t>(&bytes[68]);
  footer.block_table_xxh3 = Load<std::uint64_t>(&bytes[72]);
  footer.section_table_xxh3 = Load<std::uint64_t>(&bytes[80]);
  footer.sync_marker = Load<std::uint64_t>(&bytes[88]);
  if (!AllZero(bytes.subspan(96, 24))) Corrupt(where, "corrupt: reserved bytes of the footer are not zero");
  ValidateFooter(footer, file.size(), where);
  return footer;
}

namespace {

SectionEntry DecodeSection(const std::byte* from) {
  SectionEntry entry;
  entry.id = Load<std::uint32_t>(from);
  entry.flags = Load<std::uint32_t>(from + 4);
  entry.offset = Load<std::uint64_t>(from + 8);
  entry.bytes = Load<std::uint64_t>(from + 16);
  entry.block_bytes = Load<std::uint64_t>(from + 24);
  entry.num_blocks = Load<std::uint32_t>(from + 32);
  entry.first_block = Load<std::uint32_t>(from + 36);
  entry.column = Load<std::uint32_t>(from + 40);
  entry.column_type = Load<std::uint16_t>(from + 44);
  entry.column_width = Load<std::uint16_t>(from + 46);
  return entry;
}

// `end`: of the section before; `blocks`: the number of blocks of all before.
void ValidateSection(const SectionEntry& s, const FileFooter& footer, std::uint64_t end, std::uint32_t blocks, const Location& where) {
  const std::string name = "corrupt: section \"" + SectionName(s) + "\"";
  if (s.offset % kSectionAlignment != 0 || s.offset < end || s.offset > footer.block_table_offset ||
      s.bytes > footer.block_table_offset - s.offset) {
    Corrupt(where, name + " leaves its place");
  }
  if (s.block_bytes == 0) Corrupt(where, name + " has blocks of no bytes");
  const std::uint64_t num_blocks = s.bytes / s.block_bytes + (s.bytes % s.block_bytes != 0);
  if (s.num_blocks != num_blocks || s.first_block != blocks || s.num_blocks > footer.num_blocks - blocks) {
    Corrupt(where, name + " has a wrong number of blocks");
  }
}

}  // namespace

std::vector<SectionEntry> DecodeSections(Bytes file, const FileFooter& footer, const std::string& path) {
  const Bytes block_table = file.subspan(footer.block_table_offset, footer.num_blocks * kChecksumBytes);
  if (Xxh3_64(block_table) != footer.block_table_xxh3) {
    Corrupt(Location{path, {}, footer.block_table_offset}, "corrupt: checksum mismatch in the block table");
  }
  const Bytes table = file.subspan(footer.section_table_offset, footer.num_sections * kSectionEntryBytes);
  if (Xxh3_64(table) != footer.section_table_xxh3) {
    Corrupt(Location{path, {}, footer.section_table_offset}, "corrupt: checksum mismatch in the section table");
  }
  std::vector<SectionEntry> sections;
  std::uint64_t end = footer.index_offset;
  std::uint32_t blocks = 0;
  for (std::uint32_t i = 0; i < footer.num_sections; ++i) {
    const Location where{path, {}, footer.section_table_offset + i * kSectionEntryBytes};
    const SectionEntry entry = DecodeSection(&table[i * kSectionEntryBytes]);
    ValidateSection(entry, footer, end, blocks, where);
    end = entry.offset + entry.bytes;
    blocks += entry.num_blocks;
    sections.push_back(entry);
  }
  if (blocks != footer.num_blocks) Corrupt(Location{path, {}, footer.section_table_offset}, "corrupt: blocks that belong to no section");
  return sections;
}

}  // namespace shardpack
