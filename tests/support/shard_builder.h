// Shards and datasets made for tests, whole or bent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "shardpack/manifest.h"
#include "shardpack/record.h"
#include "shardpack/shard_reader.h"
#include "shardpack/shard_writer.h"

namespace shardpack::test {

// A folder of its own that goes with the object.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  ~TempFolder();
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::vector<std::byte> ReadFile(const std::filesystem::path& path);
void WriteFile(const std::filesystem::path& path, Bytes bytes);
// `size` bytes that do not compress, the same for the same seed.
std::vector<std::byte> Noise(std::size_t size, std::uint64_t seed);
std::vector<std::byte> ToBytes(std::string_view text);

struct TestRecord {
  std::string key;
  std::int64_t label = 0;
  std::vector<std::byte> raw;  // the encoded image
  Codec codec = Codec::kStored;
  Encoding encoding = Encoding::kUnknown;
  std::uint32_t width = 0, height = 0;
  std::uint8_t channels = 3, bit_depth = 8;
  Orientation orientation = 1;
  std::string metadata = {};
  std::vector<std::byte> side_data = {};
  bool begins_block = false;  // of kZstdBlock: not in the block of the record before
};

// Builds what was added with the product's own writer.
class ShardBuilder {
 public:
  ShardWriterOptions options;

  ShardBuilder& Add(TestRecord record);
  const std::vector<TestRecord>& records() const { return records_; }

  ShardSummary Write(const std::filesystem::path& path) const;
  std::vector<std::byte> Build() const;

 private:
  std::vector<TestRecord> records_;
};

// Two records a class, all codecs, metadata, side data, a dictionary and class names: every section there is.
ShardBuilder EverySection();
const std::vector<std::byte>& EverySectionBytes();  // built once: each build waits for the disk

// The same with eight records, four of them in two blocks: one of three and one of one.
ShardBuilder EveryFeature();
const std::vector<std::byte>& EveryFeatureBytes();

// Writes a dataset of `shards` into `folder`, with the manifest that fits. Class names are those of the first shard.
Manifest WriteDataset(const std::filesystem::path& folder, const std::vector<ShardBuilder>& shards);

// What VerifyAll() or, failing that, Open() says of the file: "kind: message", a line a fault.
std::vector<std::string> FaultsOf(const std::filesystem::path& path);

// A shard's bytes with access to its structures, so that a value can be made wrong under right checksums.
class BentShard {
 public:
  explicit BentShard(std::vector<std::byte> bytes);

  std::vector<std::byte>& bytes() { return bytes_; }
  // Where the section's bytes, its entry in the section table, and the footer begin.
  std::uint64_t SectionOffset(std::uint32_t id) const;
  std::uint64_t SectionEntryOffset(std::uint32_t id) const;
  std::uint64_t footer_offset() const { return bytes_.size() - 128; }

  void Set8(std::uint64_t at, std::uint8_t value);
  void Set16(std::uint64_t at, std::uint16_t value);
  void Set32(std::uint64_t at, std::uint32_t value);
  void Set64(std::uint64_t at, std::uint64_t value);
  std::uint64_t Get64(std::uint64_t at) const;
  std::uint32_t Get32(std::uint64_t at) const;

  // Makes every checksum of header, index and footer right again, whatever stands there.
  const std::vector<std::byte>& Reseal();

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace shardpack::test
