#include "libshard/store/record_format.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "libshard/store/coding.h"
#include "libshard/store/compression.h"
#include "libshard/store/format_checks.h"

namespace shardpack {
namespace {

// A byte above 127 and both line ends: a transfer as text is seen at once.
constexpr char kHeaderMagic[] = "\x89SHPK\r\n\x1A";

constexpr std::uint64_t kMaxHeaderBytes = 4096;
constexpr std::uint8_t kLastEncoding = static_cast<std::uint8_t>(Encoding::kPixels);
constexpr std::uint8_t kLastCodec = static_cast<std::uint8_t>(Codec::kZstdBlock);
constexpr std::uint8_t kMetadataFollows = 0x80;  // in the codec's byte of a record header

[[noreturn]] void ThrowNoShard(Bytes file, const std::string& path) {
  const char* what = "";
  if (StartsWith(file, "\x89HDF\r\n\x1A\n")) what = ": the signature is that of HDF5";
  if (StartsWith(file, "\xFF\xD8\xFF")) what = ": a JPEG picture";
  if (StartsWith(file, "\x89PNG\r\n\x1A\n")) what = ": a PNG picture";
  throw Error(ErrorCode::kCorruption, Location{path, {}, {}}, std::string("not a shardpack shard") + what);
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
  if (header_bytes < kHeaderBytes || header_bytes > kMaxHeaderBytes || header_bytes > file.size())
    Corrupt(where, "corrupt: length of the header");
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
  assert((header.codec & kMetadataFollows) == 0);
  const std::size_t size = RecordHeaderBytes(header);
  const std::size_t metadata_at = RecordHeaderBytes(header.key.size()) - kChecksumBytes;
  const bool has_metadata = !header.metadata.empty();
  // Paddings, if any, end here.
  std::memset(to + metadata_at - 8, 0, 8);
  std::memset(to + size - kChecksumBytes - 8, 0, 8);
  Store(to, header.sync_marker);
  Store(to + 8, header.record);
  Store(to + 12, header.stored_bytes);
  Store(to + 16, header.label);
  Store(to + 24, header.stored_xxh3_low);
  Store(to + 28, static_cast<std::uint16_t>(header.key.size()));
  Store(to + 30, header.encoding);
  Store(to + 31, static_cast<std::uint8_t>(header.codec | (has_metadata ? kMetadataFollows : 0)));
  std::copy(header.key.begin(), header.key.end(), reinterpret_cast<char*>(to + kRecordHeaderBytes));
  if (has_metadata) {
    Store(to + metadata_at, static_cast<std::uint32_t>(header.metadata.size()));
    std::memcpy(to + metadata_at + 4, header.metadata.data(), header.metadata.size());
  }
  Seal({to, size});
}

HeaderState DecodeRecordHeader(Bytes bytes, RecordHeader& header) {
  if (bytes.size() < kRecordHeaderBytes) return HeaderState::kBadSize;
  const std::byte* const from = bytes.data();
  const std::uint16_t key_bytes = Load<std::uint16_t>(from + 28);
  const std::uint8_t codec = Load<std::uint8_t>(from + 31);
  const bool has_metadata = (codec & kMetadataFollows) != 0;
  const std::uint64_t metadata_at = RecordHeaderBytes(key_bytes) - kChecksumBytes;
  if (metadata_at + kChecksumBytes > bytes.size()) return HeaderState::kBadSize;  // as many bytes as the size's word
  const std::uint32_t metadata_bytes = has_metadata ? Load<std::uint32_t>(from + metadata_at) : 0;
  const std::uint64_t size = RecordHeaderBytes(key_bytes, metadata_bytes);
  if (size > bytes.size() || has_metadata != (metadata_bytes != 0)) return HeaderState::kBadSize;
  if (!IsSealed(bytes.first(size))) return HeaderState::kBadChecksum;
  const std::size_t key_end = kRecordHeaderBytes + key_bytes;
  const std::size_t metadata_end = has_metadata ? metadata_at + 4 + metadata_bytes : metadata_at;
  if (!AllZero(bytes.subspan(key_end, metadata_at - key_end)) ||
      !AllZero(bytes.subspan(metadata_end, size - kChecksumBytes - metadata_end))) {
    return HeaderState::kBadPadding;
  }
  header.sync_marker = Load<std::uint64_t>(from);
  header.record = Load<std::uint32_t>(from + 8);
  header.stored_bytes = Load<std::uint32_t>(from + 12);
  header.label = Load<std::int64_t>(from + 16);
  header.stored_xxh3_low = Load<std::uint32_t>(from + 24);
  header.encoding = Load<std::uint8_t>(from + 30);
  header.codec = static_cast<std::uint8_t>(codec & ~kMetadataFollows);
  header.key = AsText(bytes.subspan(kRecordHeaderBytes, key_bytes));
  header.metadata = has_metadata ? AsText(bytes.subspan(metadata_at + 4, metadata_bytes)) : std::string_view();
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
  if ((Load<std::uint32_t>(from + 36) & ~std::uint32_t{15} & kRefuseUnknown) != 0)
    return {ErrorCode::kUnsupported, "flags this program does not know"};
  if (static_cast<std::uint8_t>(info.encoding) > kLastEncoding || static_cast<std::uint8_t>(info.codec) > kLastCodec) {
    return {ErrorCode::kUnsupported, "an encoding or codec this program does not know"};
  }
  if (row.key_offset > limits.key_heap_bytes || row.key_bytes > limits.key_heap_bytes - row.key_offset)
    return corrupt("corrupt: the key leaves its heap");
  const bool in_block = info.codec == Codec::kZstdBlock;  // whose header has no key
  const std::uint64_t smallest = kHeaderBytes + RecordHeaderBytes(in_block ? 0 : row.key_bytes);
  if (info.offset % kPayloadAlignment != 0 || info.offset < smallest || info.offset > limits.payload_end ||
      info.stored_bytes > limits.payload_end - info.offset) {
    return corrupt("corrupt: the payload leaves its region");
  }
  if (info.orientation < 1 || info.orientation > 8) return corrupt("corrupt: the orientation is not one of 1 to 8");
  if (info.codec == Codec::kStored) {
    if (info.raw_bytes != info.stored_bytes || info.encoded_xxh3 != info.stored_xxh3)
      return corrupt("corrupt: sizes or hashes of a stored record differ");
  } else if (info.raw_bytes > MaxRawBytes(info.stored_bytes)) {
    return corrupt("corrupt: the payload is too short for its raw size");
  }
  if (info.codec == Codec::kZstdDictionary && !limits.has_dictionary)
    return corrupt("corrupt: the shard has no dictionary");
  if (in_block && !limits.has_block_positions) return corrupt("corrupt: the shard has no positions in blocks");
  return {};
}

}  // namespace shardpack
