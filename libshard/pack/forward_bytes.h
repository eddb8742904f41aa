// The content of a file from front to back, decompressed where its first bytes say that it is compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libshard/pack/archive_file.h"
#include "shardpack/record.h"

namespace shardpack {

enum class Wrapping { kPlain, kGzip, kZlib, kZstd };
// By the first bytes. kZlib has no magic worth the name: it is told by its header's check bits, so only ask about files
// that are nothing else.
Wrapping WrappingOf(std::string_view head);

// Not thread-safe. Errors are Error with kBadInput (cut off, damaged: with the archive's path) or kIo, OutOfResources.
class ForwardBytes {
 public:
  static std::unique_ptr<ForwardBytes> Open(const ArchiveFile& file, Wrapping wrapping);
  // A part of a file, as it is. Precondition: it lies in the file.
  static std::unique_ptr<ForwardBytes> OpenRange(const ArchiveFile& file, std::uint64_t offset, std::uint64_t size);
  virtual ~ForwardBytes() = default;

  // The next bytes, at most `most`; none at the end. The view lives until the next call.
  virtual Bytes Next(std::size_t most) = 0;
  // Passes over up to `count` bytes where that is cheaper than reading them; gives how many.
  virtual std::uint64_t Skip(std::uint64_t count) = 0;

  // Reads exactly `size` bytes; fewer only at the end. Gives how many.
  std::uint64_t Read(std::byte* to, std::uint64_t size);
  // Passes over exactly `count` bytes; fewer only at the end. Gives how many.
  std::uint64_t PassOver(std::uint64_t count);
};

}  // namespace shardpack
