#include "libshard/store/record_scan.h"

#include <string.h>

#include <algorithm>
#include <map>

#include "libshard/store/coding.h"
#include "libshard/store/format_checks.h"

namespace shardpack {
namespace {

constexpr std::size_t kMarkerBytes = 8;
constexpr std::size_t kVotes = 16;

// What stands at `offset`, if it is a record header of that marker.
std::optional<ScannedRecord> RecordAt(Bytes file, std::uint64_t offset) {
  ScannedRecord found;
  if (DecodeRecordHeader(file.subspan(offset), found.header) != HeaderState::kGood) return std::nullopt;
  found.offset = offset;
  found.payload_offset = offset + RecordHeaderBytes(found.header);
  const std::uint64_t left = file.size() - found.payload_offset;
  found.payload = file.subspan(found.payload_offset, std::min<std::uint64_t>(left, found.header.stored_bytes));
  found.payload_good = found.payload.size() == found.header.stored_bytes &&
                       static_cast<std::uint32_t>(Xxh3_64(found.payload)) == found.header.stored_xxh3_low;
  found.end = found.payload_offset + AlignUp(found.header.stored_bytes, kPayloadAlignment);
  return found;
}

// Cheap, for it is asked at every eighth byte of the file.
bool MayBeHeader(const std::byte* at, std::uint64_t left) {
  const std::uint32_t stored_bytes = Load<std::uint32_t>(at + 12);
  const std::uint8_t encoding = Load<std::uint8_t>(at + 30), codec = Load<std::uint8_t>(at + 31) & 0x7F;
  return stored_bytes <= left && encoding <= static_cast<std::uint8_t>(Encoding::kPixels) &&
         codec <= static_cast<std::uint8_t>(Codec::kZstdBlock);
}

// Good records are passed as a whole, so that a shard within a shard has no vote.
std::optional<std::uint64_t> MarkerOfMost(Bytes file) {
  std::map<std::uint64_t, std::size_t> votes;
  std::size_t cast = 0;
  for (std::uint64_t at = kHeaderBytes; at + kRecordHeaderBytes <= file.size() && cast < kVotes;) {
    std::optional<ScannedRecord> found;
    if (MayBeHeader(&file[at], file.size() - at)) found = RecordAt(file, at);
    if (!found) {
      at += kPayloadAlignment;
      continue;
    }
    ++votes[found->header.sync_marker];
    ++cast;
    at = AlignUp(found->payload_good ? found->end : found->payload_offset, kPayloadAlignment);
  }
  const auto most =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end()) return std::nullopt;
  return most->first;
}

}  // namespace

std::optional<ScannedRecord> RecordScan::Next() {
  std::byte marker[kMarkerBytes];
  Store(marker, sync_marker_);
  while (position_ < file_.size() && file_.size() - position_ >= kRecordHeaderBytes) {
    const void* const hit = memmem(&file_[position_], file_.size() - position_, marker, kMarkerBytes);
    if (hit == nullptr) break;
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(hit) - file_.data());
    std::optional<ScannedRecord> found = RecordAt(file_, offset);
    if (found) {
      position_ = found->payload_good ? found->end : found->payload_offset;
      return found;
    }
    position_ = offset + 1;
  }
  position_ = file_.size();
  return std::nullopt;
}

std::optional<std::uint64_t> FindSyncMarker(Bytes file) {
  if (file.size() >= kHeaderBytes && IsSealed(file.first(kHeaderBytes)))
    return Load<std::uint64_t>(&file[kSyncMarkerInHeader]);
  if (file.size() >= kHeaderBytes + kFooterBytes) {
    const Bytes footer = file.last(kFooterBytes);
    if (IsSealed(footer)) return Load<std::uint64_t>(&footer[kSyncMarkerInFooter]);
  }
  return MarkerOfMost(file);
}

Bytes FindDictionary(Bytes file, std::uint64_t sync_marker) {
  const std::optional<ScannedRecord> first = RecordScan(file, sync_marker).Next();
  const bool found = first && first->header.record == kDictionaryRecord && first->payload_good;
  return found ? first->payload : Bytes();
}

}  // namespace shardpack
