#include "libshard/pack/repair_scan.h"

#include <algorithm>
#include <unordered_set>

#include "libshard/store/coding.h"
#include "libshard/store/format_checks.h"
#include "libshard/store/record_format.h"
#include "libshard/store/record_scan.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

// Of two units of one number the good one, else the first.
bool IsBetter(const RepairUnit& a, const RepairUnit& b) {
  if (a.number != b.number) return a.number < b.number;
  return a.good != b.good ? a.good : a.begin < b.begin;
}

void KeepTheBestOfEachNumber(std::vector<RepairUnit>& units) {
  std::sort(units.begin(), units.end(), IsBetter);
  const auto same = [](const RepairUnit& a, const RepairUnit& b) { return a.number == b.number; };
  units.erase(std::unique(units.begin(), units.end(), same), units.end());
}

bool FitsRow(const Row& row, const RepairUnit& unit) {
  return row.info.offset == static_cast<std::uint64_t>(unit.end - AlignUp(unit.payload.size(), kPayloadAlignment)) &&
         row.info.stored_bytes == unit.payload.size() && row.info.stored_xxh3 == Xxh3_64(unit.payload);
}

}  // namespace

DamagedShard::DamagedShard(const std::filesystem::path& path) : file_(MappedFile::Open(path)) {
  const std::string name = path.native();
  if (StartsWith(bytes(), "\x89HDF\r\n\x1A\n"))
    throw Error(ErrorCode::kUnsupported, Location{name, {}, {}}, "an HDF5 file: only record shards are repaired");
  try {
    index_ = ShardReader::OpenByFooter(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruption) throw;
  }
  const std::optional<std::uint64_t> marker = index_ ? index_->sync_marker() : FindSyncMarker(bytes());
  if (!marker)
    throw Error(ErrorCode::kCorruption, Location{name, {}, {}}, "no shard, or no record of it is left to find");
  sync_marker_ = *marker;
  index_is_whole_ = index_ && ReadWholeIndex();
}

bool DamagedShard::ReadWholeIndex() const {
  try {
    index_->class_names();
    index_->Dictionary();
    for (std::uint64_t i = 0; i < index_->num_records(); ++i) {
      index_->Info(i);
      index_->Key(i);
      index_->Metadata(i);
      index_->SideData(i);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<RepairUnit> DamagedShard::Units(const std::function<void(std::uint64_t bytes)>& check) const {
  if (index_is_whole_) return UnitsOfIndex();
  std::vector<RepairUnit> units = UnitsOfScan(check);
  if (index_) AddFromIndex(units);
  KeepTheBestOfEachNumber(units);
  return units;
}

// The payload is looked at later, by many threads.
RepairUnit DamagedShard::UnitOfRow(std::uint64_t i) const {
  const RecordInfo info = index_->Info(i);
  RepairUnit unit;
  unit.number = i;
  unit.by_index = true;
  unit.payload = bytes().subspan(info.offset, info.stored_bytes);
  unit.codec = static_cast<std::uint8_t>(info.codec);
  unit.end = info.offset + AlignUp(info.stored_bytes, kPayloadAlignment);
  const bool in_block = info.codec == Codec::kZstdBlock;
  const std::uint64_t header =
      in_block ? RecordHeaderBytes(0) : RecordHeaderBytes(index_->Key(i).size(), index_->Metadata(i).size());
  unit.begin = info.offset - std::min(header, info.offset);
  return unit;
}

std::vector<RepairUnit> DamagedShard::UnitsOfIndex() const {
  std::vector<RepairUnit> units;
  for (std::uint64_t i = 0; i < index_->num_records(); ++i) {
    const RepairUnit unit = UnitOfRow(i);
    const bool same_block = !units.empty() && unit.codec == static_cast<std::uint8_t>(Codec::kZstdBlock) &&
                            units.back().payload.data() == unit.payload.data();
    if (same_block) {
      ++units.back().count;
    } else {
      units.push_back(unit);
    }
  }
  return units;
}

std::vector<RepairUnit> DamagedShard::UnitsOfScan(const std::function<void(std::uint64_t bytes)>& check) const {
  std::vector<RepairUnit> units;
  RecordScan scan(bytes(), sync_marker_);
  std::uint64_t checked = 0;
  while (const std::optional<ScannedRecord> found = scan.Next()) {
    check(found->end - std::min(checked, found->end));
    checked = found->end;
    const RecordHeader& header = found->header;
    if (header.record == kDictionaryRecord) continue;
    RepairUnit unit;
    unit.number = header.record;
    unit.begin = found->offset;
    unit.end = found->end;
    unit.payload = found->payload;
    unit.good = found->payload_good;
    unit.key = header.key;
    unit.metadata = AsBytes(header.metadata);
    unit.label = header.label;
    unit.encoding = header.encoding;
    unit.codec = header.codec;
    units.push_back(unit);
  }
  return units;
}

// Records whose header is harmed and whose row and payload are not. A block is added once: its frame says what it
// holds.
void DamagedShard::AddFromIndex(std::vector<RepairUnit>& units) const {
  std::unordered_set<const std::byte*> known;
  for (const RepairUnit& unit : units) {
    if (unit.good) known.insert(unit.payload.data());
  }
  for (std::uint64_t i = 0; i < index_->num_records(); ++i) {
    try {
      RepairUnit unit = UnitOfRow(i);
      if (known.contains(unit.payload.data())) continue;
      const RecordInfo info = index_->Info(i);
      const bool in_block = info.codec == Codec::kZstdBlock;
      if (in_block && i > 0 && index_->Info(i - 1).offset == info.offset) continue;
      unit.good = Xxh3_64(unit.payload) == info.stored_xxh3;
      unit.by_index = false;  // its side data may be what cannot be read
      if (!in_block) {
        unit.key = index_->Key(i);
        unit.metadata = index_->Metadata(i);
        unit.label = info.label;
        unit.encoding = static_cast<std::uint8_t>(info.encoding);
      }
      units.push_back(unit);
    } catch (const Error&) {
      // Of this record the index says nothing.
    }
  }
}

std::optional<std::uint64_t> DamagedShard::PayloadEnd() const {
  if (!index_) return std::nullopt;
  const std::vector<ShardReader::Section> sections = index_->sections();
  return sections.empty() ? std::nullopt : std::optional(sections.front().offset);
}

std::optional<std::uint64_t> DamagedShard::NumRecords(const std::vector<RepairUnit>& units) const {
  if (index_) return index_->num_records();
  const auto last = std::find_if(units.rbegin(), units.rend(), [](const RepairUnit& unit) { return unit.good; });
  if (last == units.rend()) return std::nullopt;
  const Bytes file = bytes();
  const std::uint64_t row_at = last->number * kRowBytes;
  for (std::uint64_t index = AlignUp(last->end, kIndexAlignment);
       index < file.size() && row_at < file.size() - index && kRowBytes <= file.size() - index - row_at;
       index += kIndexAlignment) {
    if (!FitsRow(DecodeRow(&file[index + row_at]), *last)) continue;
    // What follows the rows are keys: text that makes no row with an offset among the payloads.
    std::uint64_t records = last->number + 1, offset = last->begin;
    for (; (records + 1) * kRowBytes <= file.size() - index; ++records) {
      const Row row = DecodeRow(&file[index + records * kRowBytes]);
      const bool follows = row.info.offset % kPayloadAlignment == 0 && row.info.offset >= offset &&
                           row.info.offset < index && row.info.stored_bytes <= index - row.info.offset;
      if (!follows) break;
      offset = row.info.offset;
    }
    return records;
  }
  return std::nullopt;
}

}  // namespace shardpack
