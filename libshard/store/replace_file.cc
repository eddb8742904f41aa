#include "libshard/store/replace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "libshard/store/unique_fd.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

void WriteSynced(const std::filesystem::path& path, std::string_view text) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) ThrowSystemError(errno, "remove", path.string());
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) ThrowSystemError(errno, "create", path.string());
  while (!text.empty()) {
    const ssize_t written = write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowSystemError(errno, "write", path.string());
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (fsync(fd.get()) != 0) ThrowSystemError(errno, "sync", path.string());
  if (close(fd.Release()) != 0) ThrowSystemError(errno, "close", path.string());
}

}  // namespace

void ReplaceFile(const std::filesystem::path& partial, const std::filesystem::path& target, std::string_view text) {
  try {
    WriteSynced(partial, text);
    if (rename(partial.c_str(), target.c_str()) != 0) ThrowSystemError(errno, "rename into place", target.string());
  } catch (...) {
    unlink(partial.c_str());
    throw;
  }
}

void SyncFolder(const std::filesystem::path& folder) {
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) ThrowSystemError(errno, "open", folder.string());
  // Some network file systems refuse to sync a folder, having done so already.
  if (fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) ThrowSystemError(errno, "sync", folder.string());
}

}  // namespace shardpack
