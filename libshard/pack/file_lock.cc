#include "libshard/pack/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr auto kPause = std::chrono::milliseconds(10);
constexpr int kTries = 30;
constexpr int kLockFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// "node7 4711" in words; empty where it is not that.
std::string HolderIn(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  const auto space = text.find(' ');
  if (space == std::string::npos || space == 0 || space + 1 == text.size()) return "";
  const std::string host = text.substr(0, space), process = text.substr(space + 1);
  if (!std::all_of(host.begin(), host.end(), IsWordCharacter)) return "";
  if (process.find_first_not_of("0123456789") != std::string::npos) return "";
  return "host " + host + ", process " + process;
}

}  // namespace

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "unknown";
  std::string host = std::string(name).substr(0, 48);
  std::replace_if(
      host.begin(), host.end(), [](char c) { return !IsWordCharacter(c); }, '_');
  return host;
}

std::string OwnHolder() { return HolderIn(HostName() + " " + std::to_string(getpid())); }

FileLock::FileLock(int folder, const std::string& name, const std::string& shown)
    : fd_(openat(folder, name.c_str(), O_RDWR | O_CREAT | kLockFlags, 0666)), shown_(shown) {
  if (!fd_) ThrowSystemError(errno, "open", shown);
}

bool FileLock::Try(Mode mode) {
  while (flock(fd_.get(), (mode == Mode::kAlone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    if (errno != ENOLCK && errno != EOPNOTSUPP && errno != ENOSYS) ThrowSystemError(errno, "lock", shown_);
    has_locks_ = false;  // shards are named by content, double work is harmless
    return true;
  }
  return true;
}

bool FileLock::TryForAMoment(Mode mode) {
  for (int tries = 0; tries < kTries; ++tries) {
    if (Try(mode)) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

bool FileLock::IsThere(int folder, const std::string& name) const {
  struct stat ours, there;
  return fstat(fd_.get(), &ours) == 0 && fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

void FileLock::WriteHolder() const {
  const std::string text = HostName() + " " + std::to_string(getpid()) + "\n";
  // Only told to people: where it cannot be written, as on a full disk, packing says so in its own words.
  if (ftruncate(fd_.get(), 0) != 0) return;
  [[maybe_unused]] const ssize_t written = pwrite(fd_.get(), text.data(), text.size(), 0);
}

std::optional<LockState> LookAtLock(int folder, const std::string& name) {
  const UniqueFd fd(openat(folder, name.c_str(), O_RDONLY | kLockFlags));
  if (!fd) return std::nullopt;
  LockState state;
  if (flock(fd.get(), LOCK_SH | LOCK_NB) == 0) {
    flock(fd.get(), LOCK_UN);
  } else {
    state.held = errno == EWOULDBLOCK;
  }
  char text[128];
  const ssize_t got = pread(fd.get(), text, sizeof text, 0);
  if (got > 0) state.holder = HolderIn(std::string(text, static_cast<std::size_t>(got)));
  return state;
}

}  // namespace shardpack
