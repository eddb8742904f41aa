// The inside of ShardReader, shared by reading and verifying.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libshard/store/blocked_section.h"
#include "libshard/store/compression.h"
#include "libshard/store/mapped_file.h"
#include "libshard/store/record_format.h"
#include "shardpack/shard_reader.h"

namespace shardpack {

struct ShardReader::Impl {
  // `by_footer`: see ShardReader::OpenByFooter().
  explicit Impl(const std::filesystem::path& path, bool by_footer = false);
  Impl(const Impl&) = delete;  // the checks of the sections point here

  FileHeader ReadHeader(bool by_footer) const;
  void BindSections();
  void Bind(const SectionEntry& entry);
  BlockedSection* Column(std::uint32_t column);  // null where it is not known
  void SetChecks();
  bool IsBound(const SectionEntry& entry) const;  // to one of the members below
  [[noreturn]] void Corrupt(std::uint64_t offset, const std::string& message) const;
  Location At(std::uint64_t record, std::uint64_t offset) const { return {path_text, record, offset}; }

  Row RowAt(std::uint64_t i) const { return DecodeRow(rows.At(i)); }
  std::string_view Key(std::uint64_t i) const;
  // The entry of an optional heap that belongs to record `i`.
  Bytes HeapEntry(std::uint64_t i, const BlockedSection& positions, const BlockedSection& heap) const;

  void Read(std::uint64_t i, std::vector<std::byte>& out) const;
  void Inflate(std::uint64_t i, const RecordInfo& info, Bytes stored, std::vector<std::byte>& out) const;
  void ReadFromBlock(std::uint64_t i, const RecordInfo& info, std::vector<std::byte>& out) const;
  // The content of the frame that record `i` lies in. Ends with the calling thread's next call, of any reader.
  Bytes BlockContent(std::uint64_t i, const RecordInfo& info) const;
  // A copy of the payload in memory of the calling thread, checked.
  Bytes CheckedCopy(std::uint64_t i, const RecordInfo& info) const;
  const DecompressionDictionary* Dictionary() const;
  const std::vector<std::string>& ClassNames() const;

  std::uint64_t LowerBound(std::uint64_t hash) const;  // in the key lookup
  std::optional<std::uint64_t> Find(std::string_view key) const;
  struct LabelRange {
    std::uint64_t first = 0, count = 0;
  };
  LabelRange Label(std::int64_t label) const;

  const std::uint64_t id;  // no other reader of this process ever has it
  std::filesystem::path path;
  std::string path_text;
  MappedFile file;
  FileHeader header;
  FileFooter footer;
  std::vector<SectionEntry> section_entries;
  Digest128 index_digest;
  BlockedSection rows, keys, metadata_positions, metadata, side_data_positions, side_data, lookup, labels, classmates,
      dictionary, class_names, block_positions;

  // Made at first use. The mutex is taken once each.
  mutable std::mutex mutex;
  mutable std::atomic<const DecompressionDictionary*> ready_dictionary{nullptr};
  mutable std::unique_ptr<const DecompressionDictionary> owned_dictionary;
  mutable std::atomic<const std::vector<std::string>*> ready_class_names{nullptr};
  mutable std::unique_ptr<const std::vector<std::string>> owned_class_names;
};

}  // namespace shardpack
