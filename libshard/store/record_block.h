// Blocks: tiny records that share one zstd frame, with a table that says which they are, for a frame whose index is
// lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "libshard/store/compression.h"
#include "shardpack/record.h"
#include "shardpack/shard_writer.h"

namespace shardpack {

// More content no frame may state: a reader asks for that much memory on the word of a few bytes.
inline constexpr std::uint64_t kMaxBlockContentBytes = 16 << 20;

// What the table says of a record. Views point into the content.
struct BlockEntry {
  std::uint32_t raw_bytes = 0;
  std::int64_t label = 0;
  std::uint8_t encoding = 0;
  std::string_view key, metadata;
  std::uint64_t position = 0;  // of its bytes in the content
  friend bool operator==(const BlockEntry&, const BlockEntry&) = default;
};

// What a record adds to the content of its block: its bytes, and its entry with key and metadata.
std::uint64_t ShareOfBlock(std::uint64_t raw_bytes, std::uint64_t key_bytes, std::uint64_t metadata_bytes) noexcept;
std::uint64_t BlockContentBytes(std::span<const RecordToWrite> records) noexcept;

// Appends the frame of `records`, which follow one another in the shard, to `out` and returns its size. Their payloads
// are the encoded images. Throws Error with kInvalidArgument where the content would be larger than
// kMaxBlockContentBytes.
std::size_t EncodeBlock(std::span<const RecordToWrite> records, Compressor& compressor, std::vector<std::byte>& out);

// Position in the content of the bytes of each record. Payloads are not looked at, but info.raw_bytes.
std::vector<std::uint64_t> BlockPositions(std::span<const RecordToWrite> records);

// nullopt where `content` is not that of a block.
std::optional<std::vector<BlockEntry>> DecodeBlock(Bytes content);

// Inflates a block's frame into `content`; false where it is none, or states more than kMaxBlockContentBytes.
bool InflateBlock(Bytes frame, std::vector<std::byte>& content);

}  // namespace shardpack
