// zstd frames of single records, with and without a dictionary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

// Not thread-safe; make one a thread. Equal input gives equal bytes for one version of zstd.
class Compressor {
 public:
  explicit Compressor(int level, Bytes dictionary = {});
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;
  ~Compressor();

  // One frame that states the size of its content and has no checksum, for the record has its own. Replaces `out`.
  void Compress(Bytes raw, std::vector<std::byte>& out);
  // The same as a view that ends with the next call.
  Bytes Compress(Bytes raw);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A dictionary prepared for decompression; may be used by any number of threads at once.
class DecompressionDictionary {
 public:
  explicit DecompressionDictionary(Bytes dictionary);  // copies; throws Error with kCorruption
  ~DecompressionDictionary();
  const void* get() const noexcept { return dictionary_; }

 private:
  void* dictionary_;
};

// The largest number of bytes that `stored_bytes` of zstd can stand for: a limit before memory is asked for.
std::uint64_t MaxRawBytes(std::uint64_t stored_bytes) noexcept;

// The size of the content that the frame states; nullopt where `stored` is no frame, states none, or is too short for
// it.
std::optional<std::uint64_t> FrameContentBytes(Bytes stored) noexcept;

// Decompresses `stored` to exactly `raw_bytes` bytes in `out`; false where that is not what it holds. Uses a context of
// the calling thread.
bool Decompress(Bytes stored, std::size_t raw_bytes, const DecompressionDictionary* dictionary,
                std::vector<std::byte>& out);

}  // namespace shardpack
