#include "libshard/pack/file_reading.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "libshard/store/unique_fd.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kMostAtOnce = 1u << 30;

FileLook Unreadable(int error, const char* doing) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      throw OutOfResources{error, doing};
    case ENOENT:
    case ENOTDIR:
      return {0, "the file vanished", ErrorCode::kBadInput};
    case ELOOP:
      return {0, "the link leads to itself", ErrorCode::kBadInput};
    default:
      return {0, std::string("cannot ") + doing + ": " + std::generic_category().message(error), ErrorCode::kIo};
  }
}

[[noreturn]] void ThrowUnreadable(int error, const char* doing) {
  const FileLook look = Unreadable(error, doing);
  throw Error(look.bad_code, look.bad);
}

}  // namespace

FileLook LookAtFile(int folder, const char* path, std::string_view missing) {
  struct stat status;
  if (fstatat(folder, path, &status, 0) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return {0, std::string(missing), ErrorCode::kBadInput};
    return Unreadable(error, "look at the file");
  }
  if (S_ISDIR(status.st_mode)) return {0, "is a folder, not a file", ErrorCode::kBadInput};
  if (!S_ISREG(status.st_mode)) return {0, "is not a regular file", ErrorCode::kBadInput};
  return {static_cast<std::uint64_t>(status.st_size), {}, ErrorCode::kBadInput};
}

bool LooksAsPlanned(int folder, const char* path, std::string_view missing, const PlannedInput& input) {
  const FileLook look = LookAtFile(folder, path, missing);
  return look.size == input.size && look.bad == input.bad;
}

void ReadWholeFile(int folder, const char* path, std::uint64_t size, std::byte* to) {
  // O_NONBLOCK: a FIFO that took the file's place since must not be waited for.
  UniqueFd file(openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) ThrowUnreadable(errno, "open");
  std::uint64_t done = 0;
  // One byte more than the scan saw is asked for, so that one call both fetches the file and shows that it has not
  // grown.
  std::byte beyond;
  while (done <= size) {
    const std::uint64_t piece = std::min(size - done, kMostAtOnce);
    const iovec parts[2] = {{to + done, static_cast<std::size_t>(piece)}, {&beyond, piece == size - done ? 1u : 0u}};
    const ssize_t n = readv(file.get(), parts, 2);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowUnreadable(errno, "read");
    done += static_cast<std::uint64_t>(n);
    if (n == 0 || done == size) break;
  }
  if (done != size) throw Error(ErrorCode::kBadInput, "the file changed while it was being packed");
}

}  // namespace shardpack
