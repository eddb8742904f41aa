#include "shardpack/shard_writer.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <optional>

#include "libshard/store/coding.h"
#include "libshard/store/compression.h"
#include "libshard/store/file_sink.h"
#include "libshard/store/record_block.h"
#include "libshard/store/record_format.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

using Buffer = std::vector<std::byte>;

void AppendTo(Buffer& out, Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

std::byte* Extend(Buffer& out, std::size_t size) {
  out.resize(out.size() + size);
  return out.data() + out.size() - size;
}

void AppendWithLength(Buffer& out, Bytes bytes) {
  Store(Extend(out, 4), static_cast<std::uint32_t>(bytes.size()));
  AppendTo(out, bytes);
}

// Entries of a heap that few records need not have: a column of positions is written only where one has.
struct OptionalHeap {
  Buffer heap;
  std::vector<std::uint64_t> positions;  // by record; 0 for none, else 1 + the entry's position

  void Add(std::uint64_t record, Bytes entry) {
    if (entry.empty()) return;
    positions.resize(record);
    positions.push_back(heap.size() + 1);
    AppendWithLength(heap, entry);
  }
};

Buffer EncodedPositions(const std::vector<std::uint64_t>& positions, std::uint64_t num_records) {
  Buffer out(num_records * kPositionBytes);
  for (std::size_t i = 0; i < positions.size(); ++i) Store(&out[i * kPositionBytes], positions[i]);
  return out;
}

struct LookupEntry {
  std::uint64_t hash;
  std::uint32_t record;
};

struct Geometry {
  SectionId id;
  std::uint32_t flags;
  std::uint64_t block_bytes;
};
constexpr Geometry Array(SectionId id, std::uint32_t flags, std::uint64_t entry_bytes) {
  return {id, flags, entry_bytes << kArrayBlockShift};
}
constexpr Geometry Heap(SectionId id, std::uint32_t flags) { return {id, flags, std::uint64_t{1} << kHeapBlockShift}; }

}  // namespace

struct ShardWriter::Impl {
  Impl(const std::filesystem::path& path, ShardWriterOptions writer_options)
      : location{path.string(), {}, {}}, options(std::move(writer_options)), sink(path) {
    sink.Write(Encode(FileHeader{kFormatVersion, options.sync_marker}));
    if (!options.dictionary.empty()) WriteDictionaryCopy();
  }

  [[noreturn]] void Refuse(const std::string& message) const {
    Location where = location;
    where.record = num_records;
    throw Error(ErrorCode::kInvalidArgument, where, message);
  }

  void CheckRecord(const RecordToWrite& record) const;
  void WriteDictionaryCopy();
  void WriteHeader(const RecordHeader& header);
  void WritePayload(Bytes payload);
  void AddToIndex(const RecordToWrite& record, RecordInfo info);
  void Append(const RecordToWrite& record);
  void AppendBlock(std::span<const RecordToWrite> records, Bytes frame);
  Row RowOf(std::uint64_t i) const { return DecodeRow(&rows[i * kRowBytes]); }
  std::string_view KeyOf(const Row& row) const { return AsText(Bytes(keys).subspan(row.key_offset, row.key_bytes)); }

  void WriteSection(const Geometry& geometry, Bytes bytes, std::uint32_t column = 0);
  void WriteOptionalHeap(const OptionalHeap& heap, std::uint32_t column, SectionId id);
  Buffer EncodedLookup();
  void WriteClassmates();
  void WriteSections();
  Buffer EncodeTail(FileFooter& footer) const;
  ShardSummary Finish();

  Location location;
  ShardWriterOptions options;
  FileSink sink;
  bool finished = false;
  std::uint64_t num_records = 0;
  Buffer rows, keys;
  std::vector<LookupEntry> lookup;
  OptionalHeap metadata, side_data;
  std::vector<std::uint64_t> block_positions;  // by record; 0 for those in no block. May be shorter than the records
  Buffer header_bytes;
  std::vector<SectionEntry> sections;
  Buffer block_table;
};

void ShardWriter::Impl::CheckRecord(const RecordToWrite& record) const {
  constexpr std::size_t kMaxLength = std::numeric_limits<std::uint32_t>::max();
  if (num_records == kMaxLength) Refuse("a shard holds at most 4,294,967,295 records");
  if (record.key.size() > kMaxKeyBytes)
    Refuse("a key of " + std::to_string(record.key.size()) + " bytes; 65,535 is the most");
  if (record.payload.size() > kMaxLength) Refuse("a payload of 4 GiB or more");
  if (record.metadata.size() > kMaxLength || record.side_data.size() > kMaxLength)
    Refuse("metadata or side data of 4 GiB or more");
  if (record.info.codec == Codec::kZstdDictionary && options.dictionary.empty()) Refuse("the shard has no dictionary");
  assert(record.info.orientation >= 1 && record.info.orientation <= 8);
  assert(record.info.codec != Codec::kStored ||
         (record.info.raw_bytes == record.payload.size() && record.info.encoded_xxh3 == record.info.stored_xxh3));
}

void ShardWriter::Impl::WriteHeader(const RecordHeader& header) {
  header_bytes.resize(RecordHeaderBytes(header));
  Encode(header, header_bytes.data());
  sink.Write(header_bytes);
}

void ShardWriter::Impl::WritePayload(Bytes payload) {
  sink.Write(payload);
  sink.PadTo(kPayloadAlignment);
}

// Before the first record, so that records that need it outlast a lost index.
void ShardWriter::Impl::WriteDictionaryCopy() {
  if (options.dictionary.size() > std::numeric_limits<std::uint32_t>::max()) Refuse("a dictionary of 4 GiB or more");
  RecordHeader header;
  header.sync_marker = options.sync_marker;
  header.record = kDictionaryRecord;
  header.stored_bytes = static_cast<std::uint32_t>(options.dictionary.size());
  header.stored_xxh3_low = static_cast<std::uint32_t>(Xxh3_64(options.dictionary));
  WriteHeader(header);
  WritePayload(options.dictionary);
}

void ShardWriter::Impl::AddToIndex(const RecordToWrite& record, RecordInfo info) {
  Encode(Row{info, keys.size(), static_cast<std::uint16_t>(record.key.size())}, Extend(rows, kRowBytes));
  AppendTo(keys, AsBytes(record.key));
  lookup.push_back({Xxh3_64(AsBytes(record.key)), static_cast<std::uint32_t>(num_records)});
  metadata.Add(num_records, record.metadata);
  side_data.Add(num_records, record.side_data);
  ++num_records;
}

void ShardWriter::Impl::Append(const RecordToWrite& record) {
  assert(!finished);
  CheckRecord(record);
  if (record.info.codec == Codec::kZstdBlock) Refuse("a record of a block is not appended on its own");
  RecordHeader header;
  header.sync_marker = options.sync_marker;
  header.record = static_cast<std::uint32_t>(num_records);
  header.stored_bytes = static_cast<std::uint32_t>(record.payload.size());
  header.label = record.info.label;
  header.stored_xxh3_low = static_cast<std::uint32_t>(record.info.stored_xxh3);
  header.key = record.key;
  header.metadata = AsText(record.metadata);
  header.encoding = static_cast<std::uint8_t>(record.info.encoding);
  header.codec = static_cast<std::uint8_t>(record.info.codec);
  WriteHeader(header);

  RecordInfo info = record.info;
  info.offset = sink.offset();
  info.stored_bytes = header.stored_bytes;
  WritePayload(record.payload);
  AddToIndex(record, info);
}

// The header before the frame is that of its first record, without a key: the table in the frame has the keys of all.
void ShardWriter::Impl::AppendBlock(std::span<const RecordToWrite> records, Bytes frame) {
  assert(!finished && !records.empty());
  for (const RecordToWrite& record : records) CheckRecord(record);
  if (records.size() > std::numeric_limits<std::uint32_t>::max() - num_records)
    Refuse("a shard holds at most 4,294,967,295 records");
  const std::optional<std::uint64_t> content_bytes = FrameContentBytes(frame);
  if (!content_bytes || *content_bytes != BlockContentBytes(records) || *content_bytes > kMaxBlockContentBytes)
    Refuse("a block that is not that of its records");
  const std::uint64_t frame_xxh3 = Xxh3_64(frame);
  RecordHeader header;
  header.sync_marker = options.sync_marker;
  header.record = static_cast<std::uint32_t>(num_records);
  header.stored_bytes = static_cast<std::uint32_t>(frame.size());
  header.stored_xxh3_low = static_cast<std::uint32_t>(frame_xxh3);
  header.codec = static_cast<std::uint8_t>(Codec::kZstdBlock);
  WriteHeader(header);

  const std::uint64_t offset = sink.offset();
  WritePayload(frame);
  block_positions.resize(num_records);
  const std::vector<std::uint64_t> positions = BlockPositions(records);
  block_positions.insert(block_positions.end(), positions.begin(), positions.end());
  for (const RecordToWrite& record : records) {
    RecordInfo info = record.info;
    info.codec = Codec::kZstdBlock;
    info.offset = offset;
    info.stored_bytes = header.stored_bytes;
    info.stored_xxh3 = frame_xxh3;
    AddToIndex(record, info);
  }
}

void ShardWriter::Impl::WriteSection(const Geometry& geometry, Bytes bytes, std::uint32_t column) {
  sink.PadTo(kSectionAlignment);
  SectionEntry entry;
  entry.id = static_cast<std::uint32_t>(geometry.id);
  entry.flags = geometry.flags;
  entry.offset = sink.offset();
  entry.bytes = bytes.size();
  entry.block_bytes = geometry.block_bytes;
  entry.first_block = static_cast<std::uint32_t>(block_table.size() / kChecksumBytes);
  if (geometry.id == SectionId::kColumn) {
    entry.column = column;
    entry.column_type = kColumnU64;
    entry.column_width = kPositionBytes;
  }
  for (std::uint64_t at = 0; at < bytes.size(); at += geometry.block_bytes, ++entry.num_blocks) {
    const Bytes block = bytes.subspan(at, std::min<std::uint64_t>(geometry.block_bytes, bytes.size() - at));
    Store(Extend(block_table, kChecksumBytes), Xxh3_64(block));
  }
  sink.Write(bytes);
  sections.push_back(entry);
}

void ShardWriter::Impl::WriteOptionalHeap(const OptionalHeap& heap, std::uint32_t column, SectionId id) {
  if (heap.heap.empty()) return;
  WriteSection(Array(SectionId::kColumn, 0, kPositionBytes), EncodedPositions(heap.positions, num_records), column);
  WriteSection(Heap(id, 0), heap.heap);
}

Buffer ShardWriter::Impl::EncodedLookup() {
  std::sort(lookup.begin(), lookup.end(), [](const LookupEntry& a, const LookupEntry& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.record < b.record;
  });
  Buffer out(lookup.size() * kLookupEntryBytes);
  for (std::size_t i = 0; i < lookup.size(); ++i) {
    Store(&out[i * kLookupEntryBytes], lookup[i].hash);
    Store(&out[i * kLookupEntryBytes + 8], lookup[i].record);
    for (std::size_t j = i; j > 0 && lookup[j - 1].hash == lookup[i].hash; --j) {
      const std::string_view key = KeyOf(RowOf(lookup[i].record));
      if (key == KeyOf(RowOf(lookup[j - 1].record))) Refuse("key \"" + Escaped(key) + "\" comes twice");
    }
  }
  return out;
}

void ShardWriter::Impl::WriteClassmates() {
  std::vector<std::int64_t> label(num_records);
  for (std::uint64_t i = 0; i < num_records; ++i) label[i] = RowOf(i).info.label;
  std::vector<std::uint32_t> order(num_records);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return label[a] < label[b]; });

  Buffer labels, classmates(num_records * kClassmateBytes);
  for (std::uint64_t i = 0, end = 0; i < num_records; i = end) {
    const std::int64_t current = label[order[i]];
    for (end = i; end < num_records && label[order[end]] == current; ++end)
      Store(&classmates[end * kClassmateBytes], order[end]);
    std::byte* const entry = Extend(labels, kLabelEntryBytes);
    Store(entry, current);
    Store(entry + 8, i);
    Store(entry + 16, end - i);
  }
  WriteSection(Array(SectionId::kLabels, 0, kLabelEntryBytes), labels);
  WriteSection(Array(SectionId::kClassmates, 0, kClassmateBytes), classmates);
}

void ShardWriter::Impl::WriteSections() {
  WriteSection(Array(SectionId::kRows, kMustUnderstand, kRowBytes), rows);
  WriteSection(Heap(SectionId::kKeyHeap, kMustUnderstand), keys);
  WriteOptionalHeap(metadata, kMetadataColumn, SectionId::kMetadataHeap);
  WriteOptionalHeap(side_data, kSideDataColumn, SectionId::kSideDataHeap);
  if (!block_positions.empty()) {
    WriteSection(Array(SectionId::kColumn, 0, kPositionBytes), EncodedPositions(block_positions, num_records),
                 kBlockColumn);
  }
  WriteSection(Array(SectionId::kKeyLookup, 0, kLookupEntryBytes), EncodedLookup());
  WriteClassmates();
  if (!options.dictionary.empty()) WriteSection(Heap(SectionId::kDictionary, kMustUnderstand), options.dictionary);
  if (options.class_names.empty()) return;
  Buffer names;
  Store(Extend(names, 4), static_cast<std::uint32_t>(options.class_names.size()));
  for (const std::string& name : options.class_names) AppendWithLength(names, AsBytes(name));
  WriteSection(Heap(SectionId::kClassNames, 0), names);
}

// Block table, section table and footer. Precondition: the sink stands where the block table begins.
Buffer ShardWriter::Impl::EncodeTail(FileFooter& footer) const {
  Buffer tail = block_table;
  tail.resize(AlignUp(tail.size(), kSectionAlignment));
  const std::size_t table = tail.size();
  for (const SectionEntry& entry : sections) Encode(entry, Extend(tail, kSectionEntryBytes));
  footer.num_records = num_records;
  footer.block_table_offset = sink.offset();
  footer.section_table_offset = sink.offset() + table;
  footer.num_blocks = static_cast<std::uint32_t>(block_table.size() / kChecksumBytes);
  footer.num_sections = static_cast<std::uint32_t>(sections.size());
  footer.block_table_xxh3 = Xxh3_64(block_table);
  footer.section_table_xxh3 = Xxh3_64(Bytes(tail).subspan(table));
  footer.sync_marker = options.sync_marker;
  tail.resize(AlignUp(tail.size(), kSectionAlignment));
  footer.file_bytes = sink.offset() + tail.size() + kFooterBytes;
  AppendTo(tail, Encode(footer));
  return tail;
}

ShardSummary ShardWriter::Impl::Finish() {
  assert(!finished);
  FileFooter footer;
  footer.payload_end = sink.offset();
  sink.PadTo(kIndexAlignment);
  footer.index_offset = sink.offset();
  WriteSections();
  sink.PadTo(kSectionAlignment);
  const Buffer tail = EncodeTail(footer);
  sink.Write(tail);
  ShardSummary summary;
  summary.records = num_records;
  summary.bytes = sink.offset();
  summary.index_digest = Xxh3_128(tail);
  summary.file_digest = sink.Finish();
  finished = true;
  return summary;
}

ShardWriter::ShardWriter(const std::filesystem::path& path, ShardWriterOptions options)
    : impl_(std::make_unique<Impl>(path, std::move(options))) {}
ShardWriter::ShardWriter(ShardWriter&&) noexcept = default;
ShardWriter& ShardWriter::operator=(ShardWriter&&) noexcept = default;
ShardWriter::~ShardWriter() = default;

void ShardWriter::Append(const RecordToWrite& record) { impl_->Append(record); }
void ShardWriter::AppendBlock(std::span<const RecordToWrite> records, Bytes frame) {
  impl_->AppendBlock(records, frame);
}
std::uint64_t ShardWriter::num_records() const noexcept { return impl_->num_records; }
std::uint64_t ShardWriter::bytes_written() const noexcept { return impl_->sink.offset(); }
ShardSummary ShardWriter::Finish() { return impl_->Finish(); }

}  // namespace shardpack
