// A section of the index whose blocks are verified at their first touch.
#pragma once

#include <atomic>
#include <cassert>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "libshard/store/record_format.h"
#include "shardpack/record.h"

namespace shardpack {

// Any number of threads may call at once: two that verify one block at the same time both find the same.
class BlockedSection {
 public:
  // Called with a block's number and its bytes once their checksum is right; throws what is wrong with the values.
  using CheckBlock = std::function<void(std::uint64_t block, Bytes bytes)>;

  BlockedSection() = default;  // of no bytes
  // `block_table` is the file's. Precondition: entry.block_bytes is 2^shift times `unit_bytes`; entry lies in the file.
  BlockedSection(Bytes file, const SectionEntry& entry, const std::byte* block_table, std::uint32_t unit_bytes,
                 unsigned shift, std::string path);

  // For a section whose content is not known.
  BlockedSection(Bytes file, const SectionEntry& entry, const std::byte* block_table, std::string path);

  void SetCheck(CheckBlock check) { check_ = std::move(check); }

  std::uint64_t bytes() const noexcept { return entry_.bytes; }
  std::uint64_t size() const noexcept { return entry_.bytes / unit_bytes_; }  // in units
  const SectionEntry& entry() const noexcept { return entry_; }

  // Unit `i`, verified. Precondition: i < size().
  const std::byte* At(std::uint64_t i) const {
    assert(i < size());
    Touch(i >> shift_);
    return data_ + i * unit_bytes_;
  }

  // `size` units from `begin`, verified. Throws kCorruption where they leave the section: then record and byte of what
  // pointed here are named.
  Bytes Range(std::uint64_t begin, std::uint64_t size, std::optional<std::uint64_t> record,
              std::uint64_t pointer_offset) const;

  // Verifies block `b`, whether or not this was done before. Throws Error.
  void Verify(std::uint64_t b) const;

  // Where unit `i` lies in the file.
  std::uint64_t OffsetOf(std::uint64_t i) const noexcept { return entry_.offset + i * unit_bytes_; }

 private:
  void Touch(std::uint64_t block) const {
    if (!verified_[block].load(std::memory_order_acquire)) [[unlikely]]
      FirstTouch(block);
  }
  void FirstTouch(std::uint64_t block) const;

  const std::byte* data_ = nullptr;
  std::uint32_t unit_bytes_ = 1;
  unsigned shift_ = 0;
  std::unique_ptr<std::atomic<bool>[]> verified_;
  SectionEntry entry_;
  const std::byte* checksums_ = nullptr;
  CheckBlock check_;
  std::string path_;
};

}  // namespace shardpack
