#include "libshard/store/file_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "libshard/store/coding.h"
#include "shardpack/error.h"

namespace shardpack {

FileSink::FileSink(const std::filesystem::path& path)
    : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!fd_) ThrowSystemError(errno, "create", path_.string());
  buffer_.reserve(kBufferBytes);
}

FileSink::~FileSink() {
  if (fd_) unlink(path_.c_str());
}

std::byte* FileSink::Extend(std::size_t size) {
  assert(size <= kBufferBytes);
  if (size > kBufferBytes - buffer_.size()) Flush();
  const std::size_t at = buffer_.size();
  buffer_.resize(at + size);
  return buffer_.data() + at;
}

void FileSink::Write(Bytes bytes) {
  if (bytes.size() > kBufferBytes - buffer_.size()) {
    Flush();
    if (bytes.size() >= kBufferBytes) return WriteThrough(bytes);
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void FileSink::PadTo(std::uint64_t alignment) {
  const std::size_t size = AlignUp(offset(), alignment) - offset();
  std::fill_n(Extend(size), size, std::byte{0});
}

void FileSink::Flush() {
  WriteThrough(buffer_);
  buffer_.clear();
}

void FileSink::WriteThrough(Bytes bytes) {
  digest_.Add(bytes);
  flushed_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowSystemError(errno, "write", path_.string());
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

Digest128 FileSink::Finish() {
  Flush();
  if (fsync(fd_.get()) != 0) ThrowSystemError(errno, "sync", path_.string());
  if (close(fd_.Release()) != 0) {
    const int error = errno;
    unlink(path_.c_str());
    ThrowSystemError(error, "close", path_.string());
  }
  return digest_.Finish();
}

}  // namespace shardpack
