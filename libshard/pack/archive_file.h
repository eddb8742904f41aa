// The file of an archive, opened when it is read and looked at through few descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "libshard/store/unique_fd.h"
#include "shardpack/error.h"

namespace shardpack {

// An open archive. The descriptor lives as long as one of these does, also after the cache has let go of it.
using SharedFd = std::shared_ptr<const UniqueFd>;

// One archive by its path. A run may name thousands of them, so descriptors are opened when they are needed and the
// least recently used ones of the whole process are closed. Const members from any thread.
class ArchiveFile {
 public:
  // Looks at the file: it must be a readable regular file. Throws Error with kNotFound, kIo or kBadInput (a folder, a
  // device). Follows links.
  explicit ArchiveFile(std::filesystem::path path);
  ~ArchiveFile();
  ArchiveFile(const ArchiveFile&) = delete;
  ArchiveFile& operator=(const ArchiveFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::string Name() const { return path_.filename().native(); }

  // Throws OutOfResources where the system has no descriptor left, else Error with kIo or kNotFound.
  SharedFd Open() const;
  // As it is now. Throws as Open().
  std::uint64_t Size() const;
  // The first `count` bytes, or as many as there are.
  std::string Head(std::size_t count) const;

 private:
  std::filesystem::path path_;
  std::uint64_t id_;  // in the cache: never used again, so that a file replaced since is not taken for this one
};

// Reads exactly `size` bytes at `offset`. False where the file ends before (`error` is 0) or the system refuses (its
// errno).
bool ReadAt(int fd, std::uint64_t offset, std::byte* to, std::uint64_t size, int& error);

// Throws what Source::Read() promises for an archive's file that cannot be read: OutOfResources, or Error with kIo.
[[noreturn]] void ThrowUnreadableArchive(int error, const char* doing);

// An error of an archive as one of the input that was read from it: without the archive's path, which the input's
// description has; an archive that is gone is a bad input.
Error ForInput(const Error& error);

}  // namespace shardpack
