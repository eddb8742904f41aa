#include "libshard/pack/archive_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <mutex>
#include <system_error>
#include <unordered_map>

#include "libshard/pack/source.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

// Far below the 1,024 that a process usually may have, and enough for the shards that are packed at one time.
constexpr std::size_t kMostOpen = 64;

bool IsOutOfResources(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS; }

// O_NONBLOCK: a FIFO in the place of an archive must not be waited for.
SharedFd OpenNow(const std::filesystem::path& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd && IsOutOfResources(errno)) throw OutOfResources{errno, "open"};
  if (!fd) ThrowSystemError(errno, "open", path.native());
  return std::make_shared<const UniqueFd>(std::move(fd));
}

class OpenFiles {
 public:
  SharedFd Get(std::uint64_t id, const std::filesystem::path& path) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_id_.find(id);
    if (found != by_id_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->fd;
    }
    while (order_.size() >= kMostOpen) {
      by_id_.erase(order_.back().id);
      order_.pop_back();
    }
    SharedFd fd = OpenNow(path);
    order_.push_front({id, fd});
    by_id_[id] = order_.begin();
    return fd;
  }

  void Drop(std::uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return;
    order_.erase(found->second);
    by_id_.erase(found);
  }

 private:
  struct OpenFile {
    std::uint64_t id;
    SharedFd fd;
  };
  std::mutex mutex_;
  std::list<OpenFile> order_;  // most recently used first
  std::unordered_map<std::uint64_t, std::list<OpenFile>::iterator> by_id_;
};

// Never destroyed: archives may be let go of by destructors of other statics.
OpenFiles& Files() {
  static OpenFiles* const files = new OpenFiles;
  return *files;
}

std::uint64_t NextId() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

ArchiveFile::ArchiveFile(std::filesystem::path path) : path_(std::move(path)), id_(NextId()) {
  const SharedFd fd = OpenNow(path_);
  struct stat status;
  if (fstat(fd->get(), &status) != 0) ThrowSystemError(errno, "look at", path_.native());
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kBadInput, Location{path_.native(), {}, {}},
                S_ISDIR(status.st_mode) ? "is a folder, not an archive" : "is not a regular file");
  }
}

ArchiveFile::~ArchiveFile() { Files().Drop(id_); }

SharedFd ArchiveFile::Open() const { return Files().Get(id_, path_); }

std::uint64_t ArchiveFile::Size() const {
  struct stat status;
  if (fstat(Open()->get(), &status) != 0) ThrowSystemError(errno, "look at", path_.native());
  return static_cast<std::uint64_t>(status.st_size);
}

std::string ArchiveFile::Head(std::size_t count) const {
  std::string head(std::min<std::uint64_t>(count, Size()), '\0');
  int error = 0;
  if (!ReadAt(Open()->get(), 0, reinterpret_cast<std::byte*>(head.data()), head.size(), error) && error != 0) {
    ThrowSystemError(error, "read", path_.native());
  }
  return head;
}

bool ReadAt(int fd, std::uint64_t offset, std::byte* to, std::uint64_t size, int& error) {
  error = 0;
  while (size > 0) {
    const ssize_t n = pread(fd, to, std::min<std::uint64_t>(size, 1u << 30), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) return false;
    to += n;
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::uint64_t>(n);
  }
  return true;
}

void ThrowUnreadableArchive(int error, const char* doing) {
  if (IsOutOfResources(error)) throw OutOfResources{error, doing};
  throw Error(ErrorCode::kIo,
              std::string("cannot ") + doing + " the archive: " + std::generic_category().message(error));
}

Error ForInput(const Error& error) {
  if (error.code() == ErrorCode::kNotFound) return Error(ErrorCode::kBadInput, "the archive vanished");
  return Error(error.code(), error.reason());
}

}  // namespace shardpack
