// Reads parts of a compressed archive's content in ascending order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "libshard/pack/forward_bytes.h"

namespace shardpack {

// Goes forward; a part before the last one read starts it over. Not thread-safe.
class StreamCursor {
 public:
  // `file` must outlive it. Opens nothing yet.
  StreamCursor(const ArchiveFile& file, Wrapping wrapping) : file_(file), wrapping_(wrapping) {}

  // False where the content ends before. Throws what ForwardBytes does; after damage every call throws, for nothing
  // behind it can be read and it would be walked up to each time.
  bool Read(std::uint64_t offset, std::byte* to, std::uint64_t size);

 private:
  const ArchiveFile& file_;
  const Wrapping wrapping_;
  std::unique_ptr<ForwardBytes> bytes_;
  std::uint64_t at_ = 0;
  std::optional<Error> damage_;
};

}  // namespace shardpack
