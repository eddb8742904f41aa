#include "libshard/store/record_block.h"

#include <cassert>
#include <cstring>

#include "libshard/store/coding.h"
#include "libshard/store/record_format.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::size_t kTableHeaderBytes = 8;
constexpr std::size_t kEntryBytes = 20;  // before key and metadata

std::uint64_t TableBytes(std::span<const RecordToWrite> records) {
  std::uint64_t size = kTableHeaderBytes;
  for (const RecordToWrite& record : records) size += ShareOfBlock(0, record.key.size(), record.metadata.size());
  return size;
}

void Append(std::vector<std::byte>& out, Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

std::byte* Extend(std::vector<std::byte>& out, std::size_t size) {
  out.resize(out.size() + size);
  return out.data() + out.size() - size;
}

}  // namespace

std::uint64_t ShareOfBlock(std::uint64_t raw_bytes, std::uint64_t key_bytes, std::uint64_t metadata_bytes) noexcept {
  return kEntryBytes + key_bytes + metadata_bytes + raw_bytes;
}

std::uint64_t BlockContentBytes(std::span<const RecordToWrite> records) noexcept {
  std::uint64_t size = TableBytes(records);
  for (const RecordToWrite& record : records) size += record.info.raw_bytes;
  return size;
}

std::size_t EncodeBlock(std::span<const RecordToWrite> records, Compressor& compressor, std::vector<std::byte>& out) {
  const std::uint64_t size = BlockContentBytes(records);
  if (size > kMaxBlockContentBytes) throw Error(ErrorCode::kInvalidArgument, "a block of more than 16 MiB");
  std::vector<std::byte> content;
  content.reserve(size);
  std::byte* const header = Extend(content, kTableHeaderBytes);
  Store(header, static_cast<std::uint32_t>(records.size()));
  Store(header + 4, static_cast<std::uint32_t>(TableBytes(records)));
  for (const RecordToWrite& record : records) {
    std::byte* const entry = Extend(content, kEntryBytes);
    Store(entry, record.info.raw_bytes);
    Store(entry + 4, static_cast<std::uint16_t>(record.key.size()));
    Store(entry + 6, static_cast<std::uint8_t>(record.info.encoding));
    Store(entry + 8, record.info.label);
    Store(entry + 16, static_cast<std::uint32_t>(record.metadata.size()));
    Append(content, AsBytes(record.key));
    Append(content, record.metadata);
  }
  for (const RecordToWrite& record : records) {
    assert(record.payload.size() == record.info.raw_bytes);
    Append(content, record.payload);
  }
  const Bytes frame = compressor.Compress(content);
  Append(out, frame);
  return frame.size();
}

std::vector<std::uint64_t> BlockPositions(std::span<const RecordToWrite> records) {
  std::vector<std::uint64_t> positions;
  std::uint64_t position = TableBytes(records);
  for (const RecordToWrite& record : records) {
    positions.push_back(position);
    position += record.info.raw_bytes;
  }
  return positions;
}

std::optional<std::vector<BlockEntry>> DecodeBlock(Bytes content) {
  if (content.size() < kTableHeaderBytes) return std::nullopt;
  const std::uint32_t count = Load<std::uint32_t>(&content[0]);
  const std::uint32_t table_bytes = Load<std::uint32_t>(&content[4]);
  if (count == 0 || table_bytes < kTableHeaderBytes || table_bytes > content.size() ||
      count > (table_bytes - kTableHeaderBytes) / kEntryBytes) {
    return std::nullopt;
  }
  std::vector<BlockEntry> entries(count);
  Bytes table = content.subspan(kTableHeaderBytes, table_bytes - kTableHeaderBytes);
  std::uint64_t position = table_bytes;
  for (BlockEntry& entry : entries) {
    if (table.size() < kEntryBytes) return std::nullopt;
    const std::byte* const from = table.data();
    entry.raw_bytes = Load<std::uint32_t>(from);
    const std::uint16_t key_bytes = Load<std::uint16_t>(from + 4);
    entry.encoding = Load<std::uint8_t>(from + 6);
    entry.label = Load<std::int64_t>(from + 8);
    const std::uint32_t metadata_bytes = Load<std::uint32_t>(from + 16);
    entry.position = position;
    position += entry.raw_bytes;
    const bool fits = Load<std::uint8_t>(from + 7) == 0 &&
                      std::uint64_t{key_bytes} + metadata_bytes <= table.size() - kEntryBytes &&
                      position <= content.size();
    if (!fits) return std::nullopt;
    entry.key = AsText(table.subspan(kEntryBytes, key_bytes));
    entry.metadata = AsText(table.subspan(kEntryBytes + key_bytes, metadata_bytes));
    table = table.subspan(kEntryBytes + key_bytes + metadata_bytes);
  }
  if (!table.empty() || position != content.size()) return std::nullopt;
  return entries;
}

bool InflateBlock(Bytes frame, std::vector<std::byte>& content) {
  const std::optional<std::uint64_t> size = FrameContentBytes(frame);
  return size && *size <= kMaxBlockContentBytes && Decompress(frame, *size, nullptr, content);
}

}  // namespace shardpack
