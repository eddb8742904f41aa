#include "libshard/store/blocked_section.h"

#include <algorithm>

#include "libshard/store/coding.h"

namespace shardpack {

BlockedSection::BlockedSection(Bytes file, const SectionEntry& entry, const std::byte* block_table,
                               std::uint32_t unit_bytes, unsigned shift, std::string path)
    : data_(file.data() + entry.offset),
      unit_bytes_(unit_bytes),
      shift_(shift),
      verified_(std::make_unique<std::atomic<bool>[]>(entry.num_blocks)),
      entry_(entry),
      checksums_(block_table + entry.first_block * kChecksumBytes),
      path_(std::move(path)) {
  assert(entry.block_bytes == std::uint64_t{unit_bytes} << shift);
}

BlockedSection::BlockedSection(Bytes file, const SectionEntry& entry, const std::byte* block_table, std::string path)
    : data_(file.data() + entry.offset),
      entry_(entry),
      checksums_(block_table + entry.first_block * kChecksumBytes),
      path_(std::move(path)) {}

Bytes BlockedSection::Range(std::uint64_t begin, std::uint64_t size, std::optional<std::uint64_t> record,
                            std::uint64_t pointer_offset) const {
  if (begin > this->size() || size > this->size() - begin) {
    throw Error(ErrorCode::kCorruption, Location{path_, record, pointer_offset},
                "corrupt: an entry leaves section \"" + SectionName(entry_) + "\"");
  }
  if (size == 0) return {};
  for (std::uint64_t b = begin >> shift_; b <= (begin + size - 1) >> shift_; ++b) Touch(b);
  return {data_ + begin * unit_bytes_, size * unit_bytes_};
}

void BlockedSection::Verify(std::uint64_t b) const {
  const std::uint64_t at = b * entry_.block_bytes;
  const Bytes block(data_ + at, std::min(entry_.block_bytes, entry_.bytes - at));
  if (Xxh3_64(block) != Load<std::uint64_t>(checksums_ + b * kChecksumBytes)) {
    throw Error(
        ErrorCode::kCorruption, Location{path_, {}, entry_.offset + at},
        "corrupt: checksum mismatch in block " + std::to_string(b) + " of section \"" + SectionName(entry_) + "\"");
  }
  if (check_) check_(b, block);
}

void BlockedSection::FirstTouch(std::uint64_t block) const {
  Verify(block);
  verified_[block].store(true, std::memory_order_release);
}

}  // namespace shardpack
