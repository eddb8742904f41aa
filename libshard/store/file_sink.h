// Writes a file front to back in large pieces and digests it on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "libshard/store/checksum.h"
#include "libshard/store/unique_fd.h"
#include "shardpack/record.h"

namespace shardpack {

// Removes the file when destroyed before Finish(). Throws Error with kIo (kNotFound where the folder is missing).
class FileSink {
 public:
  explicit FileSink(const std::filesystem::path& path);
  FileSink(FileSink&&) noexcept = default;
  ~FileSink();

  std::uint64_t offset() const noexcept { return flushed_bytes_ + buffer_.size(); }

  // The next `size` bytes of the file, for the caller to fill; valid until the next call. Precondition: size <=
  // kBufferBytes.
  std::byte* Extend(std::size_t size);
  void Write(Bytes bytes);
  void PadTo(std::uint64_t alignment);  // with zeros; at most kBufferBytes

  // Syncs and closes.
  Digest128 Finish();

  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

 private:
  void Flush();
  void WriteThrough(Bytes bytes);

  std::filesystem::path path_;
  UniqueFd fd_;
  std::vector<std::byte> buffer_;  // its capacity never changes
  std::uint64_t flushed_bytes_ = 0;
  Xxh3Stream128 digest_;
};

}  // namespace shardpack
