// A whole file, mapped for reading.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "shardpack/record.h"

namespace shardpack {

// The bytes end with the object. The file must not be cut short while it is mapped.
class MappedFile {
 public:
  // Throws Error with kNotFound, kIo, or kCorruption where `path` is no regular file. An empty file gives empty bytes.
  static MappedFile Open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  Bytes bytes() const noexcept { return {data_, size_}; }

  // Asks the system to read the range soon. Precondition: it lies inside the file.
  void WillNeed(std::size_t offset, std::size_t size) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace shardpack
