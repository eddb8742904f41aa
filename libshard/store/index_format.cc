// Section table and footer.
#include <cassert>
#include <cstring>

#include "libshard/store/coding.h"
#include "libshard/store/format_checks.h"
#include "libshard/store/record_format.h"

namespace shardpack {
namespace {

constexpr char kFooterMagic[] = "\x89SHPKEND";

}  // namespace

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
    case SectionId::kRows:
      return "rows";
    case SectionId::kColumn:
      if (entry.column == kMetadataColumn) return "metadata positions";
      if (entry.column == kSideDataColumn) return "side-data positions";
      if (entry.column == kBlockColumn) return "block positions";
      return "column " + std::to_string(entry.column);
    case SectionId::kKeyHeap:
      return "keys";
    case SectionId::kMetadataHeap:
      return "metadata";
    case SectionId::kSideDataHeap:
      return "side data";
    case SectionId::kKeyLookup:
      return "key lookup";
    case SectionId::kLabels:
      return "labels";
    case SectionId::kClassmates:
      return "classmates";
    case SectionId::kDictionary:
      return "dictionary";
    case SectionId::kSharedTables:
      return "shared tables";
    case SectionId::kClassNames:
      return "class names";
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
  if (f.file_bytes != file_bytes)
    Corrupt(where, "corrupt: the footer belongs to a file of " + std::to_string(f.file_bytes) + " bytes");
  if (f.num_records >= std::uint64_t{1} << 32) Corrupt(where, "corrupt: number of records");
  if (f.num_sections > kMaxSections) Corrupt(where, "corrupt: number of sections");
  const bool ordered = kHeaderBytes <= f.payload_end && f.payload_end <= f.index_offset &&
                       f.index_offset <= f.block_table_offset && f.block_table_offset <= f.section_table_offset &&
                       f.section_table_offset <= footer_offset;
  const bool aligned = f.payload_end % kPayloadAlignment == 0 && f.index_offset % kIndexAlignment == 0 &&
                       f.block_table_offset % kSectionAlignment == 0 && f.section_table_offset % kSectionAlignment == 0;
  if (!ordered || !aligned) Corrupt(where, "corrupt: the footer's regions are out of order");
  if (f.num_blocks * kChecksumBytes > f.section_table_offset - f.block_table_offset)
    Corrupt(where, "corrupt: the block table leaves its place");
  if (f.num_sections * kSectionEntryBytes > footer_offset - f.section_table_offset)
    Corrupt(where, "corrupt: the section table leaves its place");
}

}  // namespace

FileFooter DecodeFooter(Bytes file, const std::string& path) {
  assert(file.size() >= kHeaderBytes);
  if (file.size() < kHeaderBytes + kFooterBytes)
    Corrupt(Location{path, {}, file.size()}, "truncated: the file ends without a footer");
  const std::uint64_t offset = file.size() - kFooterBytes;
  const Location where{path, {}, offset};
  const Bytes bytes = file.subspan(offset);
  if (!StartsWith(bytes, std::string_view(kFooterMagic, 8))) {
    Corrupt(where, IsSealed(bytes) ? "corrupt: the signature of the footer is damaged"
                                   : "truncated or corrupt: the file does not end with a footer");
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
void ValidateSection(const SectionEntry& s, const FileFooter& footer, std::uint64_t end, std::uint32_t blocks,
                     const Location& where) {
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
  if (blocks != footer.num_blocks)
    Corrupt(Location{path, {}, footer.section_table_offset}, "corrupt: blocks that belong to no section");
  return sections;
}

}  // namespace shardpack
