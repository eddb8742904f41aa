// Locks that die with their process: files in the work folder, held by flock().
#pragma once

#include <optional>
#include <string>

#include "libshard/store/unique_fd.h"

namespace shardpack {

// A lock file, opened and perhaps held. Not thread-safe. The destructor lets go; the file stays.
class FileLock {
 public:
  enum class Mode { kShared, kAlone };

  FileLock() = default;
  // Makes the file where it is missing; never through a link. `shown` is its path for messages. Throws Error with kIo
  // and kNotFound (the folder is gone).
  FileLock(int folder, const std::string& name, const std::string& shown);

  // False where another process holds it, or held it a moment ago in another mode. What was held before is lost then.
  // True also on file systems without locks: has_locks() tells.
  bool Try(Mode mode);
  // The same, again and again for a moment: who looks whether a lock is held holds it for that time.
  bool TryForAMoment(Mode mode);
  // Whether the file still lies where it was opened.
  bool IsThere(int folder, const std::string& name) const;
  // Who holds it, for others to read: "node7 4711".
  void WriteHolder() const;

  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  bool has_locks() const noexcept { return has_locks_; }

 private:
  UniqueFd fd_;
  std::string shown_;
  bool has_locks_ = true;
};

// "node7", of this machine; letters, digits, dash and underscore alone.
std::string HostName();
// As LockState::holder of what this process holds.
std::string OwnHolder();

struct LockState {
  bool held = false;
  std::string holder;  // "host node7, process 4711"; empty where nothing is written
};
// Looks at a lock file without changing it; nullopt where there is none.
std::optional<LockState> LookAtLock(int folder, const std::string& name);

}  // namespace shardpack
