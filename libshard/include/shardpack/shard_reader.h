// Random access to the records of one shard file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

// Open() maps the file and verifies header, footer, section table and block tables. A block of the index is verified
// and range-checked once, before the first value of it is used. A payload is copied, the copy is checked, and the copy
// is what the caller gets.
//
// A reader never changes for its callers after Open(): any number of threads may call its const members at once. Views
// it returns (keys, metadata, names) point into the mapping and end with the reader. The file must not be cut short
// while open.
//
// Members that touch the file throw Error with kCorruption, naming shard, record and offset.
class ShardReader {
 public:
  // Throws Error with kNotFound, kIo, kCorruption ("not a shardpack shard", "truncated", ...) or kUnsupported (newer
  // version, unknown section that must not be ignored).
  static ShardReader Open(const std::filesystem::path& path);

  // The same for a shard whose header is damaged: the footer says what it said. For repairing.
  static ShardReader OpenByFooter(const std::filesystem::path& path);

  ShardReader(ShardReader&&) noexcept;
  ShardReader& operator=(ShardReader&&) noexcept;
  ~ShardReader();

  const std::filesystem::path& path() const noexcept;
  std::uint64_t num_records() const noexcept;
  std::uint64_t file_bytes() const noexcept;
  std::uint16_t format_version() const noexcept;
  std::uint64_t sync_marker() const noexcept;
  Digest128 index_digest() const noexcept;  // ShardSummary::index_digest

  // For all of these: precondition i < num_records().
  RecordInfo Info(std::uint64_t i) const;
  std::string_view Key(std::uint64_t i) const;
  Bytes Metadata(std::uint64_t i) const;  // empty where there is none
  Bytes SideData(std::uint64_t i) const;  // empty where there is none

  // The record's encoded image: stored bytes copied into private memory, checked against stored_xxh3, decompressed
  // where compressed and checked against encoded_xxh3. Replaces the contents of `out`, keeping its capacity, so that a
  // reused buffer stops allocating.
  void Read(std::uint64_t i, std::vector<std::byte>& out) const;

  // The payload of record `i` as it lies in the file, which for Codec::kZstdBlock is the frame of all its records: a
  // copy that was checked against stored_xxh3. For what moves records without decompressing them.
  void ReadStored(std::uint64_t i, std::vector<std::byte>& out) const;

  // The shard's zstd dictionary, verified; empty where it has none.
  Bytes Dictionary() const;

  // Hints that the stored bytes of record `i` will be read soon. Never throws, never waits.
  void WillNeed(std::uint64_t i) const noexcept;

  // The number of the record with this key; nullopt where there is none. Reads one or two blocks of the lookup section.
  std::optional<std::uint64_t> Find(std::string_view key) const;

  // Class list of the shard (may be empty).
  const std::vector<std::string>& class_names() const;

  // Records with this label in ascending order, and the k-th of them (precondition k < NumClassmates(label)).
  std::uint64_t NumClassmates(std::int64_t label) const;
  std::uint64_t Classmate(std::int64_t label, std::uint64_t k) const;

  // A fault found by VerifyAll().
  struct Fault {
    std::optional<std::uint64_t> record;
    std::uint64_t offset = 0;
    std::string kind;     // "checksum", "range", "padding", "record-header", "size", "order"
    std::string message;  // one line
  };
  // Checks everything a checksum covers and all padding; calls `report` for each fault and goes on where it can.
  // After each record whose bytes are good, calls `visit(i, encoded bytes)` where given. Reads front to back.
  void VerifyAll(const std::function<void(const Fault&)>& report,
                 const std::function<void(std::uint64_t, Bytes)>& visit = {}) const;

  // Sections as they lie in the file, for `shardinfo --layout`.
  struct Section {
    std::string name;
    std::uint32_t id = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint64_t block_bytes = 0, num_blocks = 0;
  };
  std::vector<Section> sections() const;

 private:
  friend class ShardVerifier;
  struct Impl;
  explicit ShardReader(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack
