#include "libshard/store/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "libshard/store/unique_fd.h"
#include "shardpack/error.h"

namespace shardpack {

MappedFile MappedFile::Open(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO in a shard's place must not make us wait for its writer.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) ThrowSystemError(errno, "open", path.string());
  struct stat status;
  if (fstat(fd.get(), &status) != 0) ThrowSystemError(errno, "read", path.string());
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorCode::kCorruption, Location{path.string(), {}, {}}, "not a shardpack shard: not a regular file");
  MappedFile file;
  file.size_ = static_cast<std::size_t>(status.st_size);
  if (file.size_ == 0) return file;
  void* const data = mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) ThrowSystemError(errno, "map", path.string());
  file.data_ = static_cast<const std::byte*>(data);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::WillNeed(std::size_t offset, std::size_t size) const noexcept {
  static const std::size_t page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t begin = offset / page_bytes * page_bytes;
  madvise(const_cast<std::byte*>(data_) + begin, offset - begin + size, MADV_WILLNEED);  // a hint: failure is no fault
}

}  // namespace shardpack
