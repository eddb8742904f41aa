#include "tests/support/shard_builder.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "libshard/store/compression.h"
#include "libshard/store/record_block.h"
#include "shardpack/error.h"

namespace shardpack::test {

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "shardpack-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::byte> ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return ToBytes(text);
}

void WriteFile(const std::filesystem::path& path, Bytes bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::vector<std::byte> Noise(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = seed * 2 + 1;
  for (std::byte& b : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

std::vector<std::byte> ToBytes(std::string_view text) {
  const Bytes bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

ShardBuilder& ShardBuilder::Add(TestRecord record) {
  records_.push_back(std::move(record));
  return *this;
}

namespace {

// The record as the writer takes it, with `stored` for its payload.
RecordToWrite ToWrite(const TestRecord& record, Bytes stored) {
  RecordToWrite out;
  out.info = {0,
              static_cast<std::uint32_t>(stored.size()),
              static_cast<std::uint32_t>(record.raw.size()),
              record.label,
              record.width,
              record.height,
              record.channels,
              record.bit_depth,
              record.encoding,
              record.codec,
              record.orientation,
              Xxh3_64(stored),
              Xxh3_64(record.raw)};
  out.key = record.key;
  out.payload = stored;
  out.metadata = AsBytes(record.metadata);
  out.side_data = record.side_data;
  return out;
}

}  // namespace

ShardSummary ShardBuilder::Write(const std::filesystem::path& path) const {
  ShardWriter writer(path, options);
  std::vector<RecordToWrite> block;
  const auto close_block = [&] {
    if (block.empty()) return;
    Compressor compressor(3);
    std::vector<std::byte> frame;
    EncodeBlock(block, compressor, frame);
    writer.AppendBlock(block, frame);
    block.clear();
  };
  for (const TestRecord& record : records_) {
    if (record.codec != Codec::kZstdBlock || record.begins_block) close_block();
    if (record.codec == Codec::kZstdBlock) {
      block.push_back(ToWrite(record, record.raw));
      continue;
    }
    std::vector<std::byte> stored = record.raw;
    if (record.codec == Codec::kZstd) Compressor(3).Compress(record.raw, stored);
    if (record.codec == Codec::kZstdDictionary) Compressor(3, options.dictionary).Compress(record.raw, stored);
    writer.Append(ToWrite(record, stored));
  }
  close_block();
  return writer.Finish();
}

std::vector<std::byte> ShardBuilder::Build() const {
  const TempFolder folder;
  Write(folder / "a.shard");
  return ReadFile(folder / "a.shard");
}

ShardBuilder EverySection() {
  ShardBuilder shard;
  shard.options.sync_marker = 0x0123456789ABCDEF;
  shard.options.class_names = {"cat", "dog", "na\xEFve"};
  shard.options.dictionary = ToBytes("the quick brown fox jumps over the lazy dog. the quick brown fox ");
  shard.Add({"cat/1.jpg", 0, Noise(37, 1), Codec::kStored, Encoding::kJpeg, 40, 30, 3, 8, 6, "", {}});
  shard.Add(
      {"cat/2.png", 0, ToBytes(std::string(300, 'x')), Codec::kZstd, Encoding::kPng, 7, 9, 1, 16, 1, R"({"a":1})", {}});
  shard.Add({"dog/1.bmp", 1, ToBytes("the quick brown fox jumps over the lazy cat"), Codec::kZstdDictionary,
             Encoding::kBmp, 5, 5, 3, 8, 1, "", Noise(9, 2)});
  shard.Add({"dog/\xFF\xFE.gif", 1, {}, Codec::kStored, Encoding::kGif, 1, 1, 4, 8, 8, R"({"b":[2,3]})", Noise(4, 3)});
  return shard;
}

const std::vector<std::byte>& EverySectionBytes() {
  static const std::vector<std::byte> bytes = EverySection().Build();
  return bytes;
}

ShardBuilder EveryFeature() {
  ShardBuilder shard = EverySection();
  const auto add = [&](const char* key, std::int64_t label, std::string_view raw, Encoding encoding,
                       std::string metadata, bool begins_block) {
    shard.Add({key, label, ToBytes(raw), Codec::kZstdBlock, encoding, 2, 3, 3, 8, 1, std::move(metadata),
               label == 2 ? Noise(5, 4) : std::vector<std::byte>{}, begins_block});
  };
  add("eel/1.ppm", 2, "P6 2 3 255 the first of a block", Encoding::kPnm, "", true);
  add("eel/2.ppm", 2, "P6 2 3 255 the second of a block", Encoding::kPnm, R"({"label":[1,2]})", false);
  add("fox/1.png", 3, "", Encoding::kPng, "", false);
  add("fox/2.png", 3, "a block of its own", Encoding::kPixels, R"({"c":null})", true);
  return shard;
}

const std::vector<std::byte>& EveryFeatureBytes() {
  static const std::vector<std::byte> bytes = EveryFeature().Build();
  return bytes;
}

Manifest WriteDataset(const std::filesystem::path& folder, const std::vector<ShardBuilder>& shards) {
  std::filesystem::create_directories(folder);
  Manifest manifest;
  manifest.creator = "test";
  if (!shards.empty()) manifest.classes = shards.front().options.class_names;
  DatasetDigester digester;
  for (const ShardBuilder& shard : shards) {
    const std::string name = "shard-" + std::to_string(manifest.shards.size()) + ".shard";
    const ShardSummary summary = shard.Write(folder / name);
    manifest.shards.push_back({name, summary.records, summary.bytes, summary.file_digest, summary.index_digest});
    manifest.records += summary.records;
    manifest.bytes_out += summary.bytes;
    for (const TestRecord& record : shard.records()) {
      manifest.bytes_in += record.raw.size();
      ++manifest.encodings[std::string(Name(record.encoding))];
      ++manifest.codecs[std::string(Name(record.codec))].records;
      ++manifest.widths[record.width];
      ++manifest.heights[record.height];
      digester.Add(record.key, record.label, AsBytes(record.metadata), record.encoding, Xxh3_64(record.raw));
    }
  }
  manifest.dataset_digest = digester.Finish(manifest.classes);
  manifest.Commit(folder);
  return manifest;
}

std::vector<std::string> FaultsOf(const std::filesystem::path& path) {
  std::vector<std::string> faults;
  try {
    const ShardReader reader = ShardReader::Open(path);
    reader.VerifyAll([&](const ShardReader::Fault& fault) { faults.push_back(fault.kind + ": " + fault.message); });
  } catch (const Error& error) {
    faults.push_back(std::string("open: ") + error.what());
  }
  return faults;
}

namespace {

constexpr std::uint64_t kEntryBytes = 48;

template <typename T>
void Put(std::vector<std::byte>& bytes, std::uint64_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes.at(at + i) = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t Get(const std::vector<std::byte>& bytes, std::uint64_t at, int size) {
  std::uint64_t value = 0;
  for (int i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes.at(at + i));
  return value;
}

}  // namespace

BentShard::BentShard(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

std::uint64_t BentShard::SectionEntryOffset(std::uint32_t id) const {
  const std::uint64_t table = Get64(footer_offset() + 56);
  for (std::uint32_t i = 0; i < Get32(footer_offset() + 68); ++i) {
    if (Get32(table + i * kEntryBytes) == id) return table + i * kEntryBytes;
  }
  throw std::runtime_error("no such section");
}

std::uint64_t BentShard::SectionOffset(std::uint32_t id) const { return Get64(SectionEntryOffset(id) + 8); }

void BentShard::Set8(std::uint64_t at, std::uint8_t value) { Put(bytes_, at, value); }
void BentShard::Set16(std::uint64_t at, std::uint16_t value) { Put(bytes_, at, value); }
void BentShard::Set32(std::uint64_t at, std::uint32_t value) { Put(bytes_, at, value); }
void BentShard::Set64(std::uint64_t at, std::uint64_t value) { Put(bytes_, at, value); }
std::uint64_t BentShard::Get64(std::uint64_t at) const { return Get(bytes_, at, 8); }
std::uint32_t BentShard::Get32(std::uint64_t at) const { return static_cast<std::uint32_t>(Get(bytes_, at, 4)); }

const std::vector<std::byte>& BentShard::Reseal() {
  const auto hash = [&](std::uint64_t at, std::uint64_t size) {
    if (at > bytes_.size() || size > bytes_.size() - at)
      return std::uint64_t{0};  // bent beyond the file: no checksum can be right
    return Xxh3_64(Bytes(bytes_).subspan(at, size));
  };
  const std::uint64_t footer = footer_offset();
  const std::uint64_t blocks = Get64(footer + 48), table = Get64(footer + 56);
  const std::uint64_t num_blocks = Get32(footer + 64), num_sections = Get32(footer + 68);
  std::uint64_t block = 0;
  for (std::uint64_t i = 0; i < num_sections && table + (i + 1) * kEntryBytes <= footer; ++i) {
    const std::uint64_t entry = table + i * kEntryBytes;
    const std::uint64_t offset = Get64(entry + 8), size = Get64(entry + 16), step = Get64(entry + 24);
    for (std::uint64_t k = 0; k < Get32(entry + 32) && block < num_blocks && step != 0; ++k, ++block) {
      if (blocks > footer || block * 8 + 8 > footer - blocks) continue;
      Set64(blocks + block * 8, hash(offset + k * step, std::min(step, size - std::min(size, k * step))));
    }
  }
  Set64(footer + 72, hash(blocks, num_blocks * 8));
  Set64(footer + 80, hash(table, num_sections * kEntryBytes));
  Set64(footer + 120, hash(footer, 120));
  Set64(56, hash(0, 56));
  return bytes_;
}

}  // namespace shardpack::test
