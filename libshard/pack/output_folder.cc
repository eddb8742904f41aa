#include "libshard/pack/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <set>
#include <vector>

#include "libshard/store/replace_file.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

// Each try is lost only to a process that ends in that very moment.
constexpr int kLockTries = 1000;

bool IsOurs(std::string_view name) {
  return name == kWorkFolder || name.starts_with(kLedgerName) || name.starts_with(kManifestName) ||
         name.starts_with("." + std::string(kManifestName)) || IsShardFileName(name);
}

// "shard-12.partial"
bool IsPartialName(std::string_view name) {
  if (!name.starts_with("shard-") || !name.ends_with(".partial")) return false;
  name = name.substr(6, name.size() - 6 - 8);
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

std::string DamageOf(const fs::path& folder, const Manifest& manifest) {
  for (const ShardEntry& shard : manifest.shards) {
    struct stat status;
    if (stat((folder / shard.file).c_str(), &status) != 0) return "its shard " + shard.file + " is missing";
    if (static_cast<std::uint64_t>(status.st_size) != shard.bytes)
      return "its shard " + shard.file + " has another size than its manifest says";
  }
  return "";
}

}  // namespace

OldDataset LookAtOutput(const fs::path& folder) {
  OldDataset old;
  struct stat status;
  if (stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT) return old;
    ThrowSystemError(errno, "look at", folder.native());
  }
  if (!S_ISDIR(status.st_mode))
    throw Error(ErrorCode::kInvalidArgument, "the output " + Escaped(folder.native()) + " is a file, not a folder");
  std::error_code error;
  std::string foreign;
  bool has_manifest = false;
  fs::directory_iterator entries(folder, error);
  if (error) ThrowSystemError(error.value(), "read folder", folder.native());
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    if (error) ThrowSystemError(error.value(), "read folder", folder.native());
    const std::string name = entries->path().filename().native();
    has_manifest |= name == kManifestName;
    // The least name, so that the message is always the same.
    if (!IsOurs(name) && (foreign.empty() || name < foreign)) foreign = name;
  }
  if (!has_manifest) {
    if (!foreign.empty()) {
      throw Error(ErrorCode::kInvalidArgument, "the output folder " + Escaped(folder.native()) +
                                                   " is not empty and holds no dataset (" + Escaped(foreign) +
                                                   " lies there): name another folder");
    }
    return old;
  }
  try {
    old.manifest = Manifest::Load(folder);
    old.damage = DamageOf(folder, *old.manifest);
  } catch (const Error& failure) {
    if (failure.code() == ErrorCode::kIo) throw;
    old.damage = failure.what();
  }
  return old;
}

std::string ShardFileName(std::uint64_t number, const Digest128& file_digest) {
  char name[64];
  std::snprintf(name, sizeof name, "shard-%05llu-%s.shard", static_cast<unsigned long long>(number),
                file_digest.Hex().substr(0, 8).c_str());
  return name;
}

bool IsShardFileName(std::string_view name) {
  if (!name.starts_with("shard-") || !(name.ends_with(".shard") || name.ends_with(".h5"))) return false;
  name.remove_prefix(6);
  name = name.substr(0, name.rfind('.'));
  const auto dash = name.find('-');
  if (dash == std::string_view::npos || dash < 5 || name.size() != dash + 9) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i < dash ? !(name[i] >= '0' && name[i] <= '9') : i > dash && !IsHex(name[i])) return false;
  }
  return true;
}

namespace {

std::vector<fs::path> UnnamedShards(const fs::path& folder, const Manifest& manifest) {
  std::set<std::string> named;
  for (const ShardEntry& shard : manifest.shards) named.insert(shard.file);
  std::vector<fs::path> unnamed;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().native();
    if (IsShardFileName(name) && !named.contains(name)) unnamed.push_back(entry.path());
  }
  return unnamed;
}

}  // namespace

void RemoveUnnamedShards(const fs::path& folder, const Manifest& manifest) noexcept {
  try {
    std::error_code ignored;
    for (const fs::path& path : UnnamedShards(folder, manifest)) fs::remove(path, ignored);
  } catch (...) {
    // A reader takes names from the manifest only; the next run tries again.
  }
}

void CleanUpBeside(const fs::path& folder, const Manifest& manifest) noexcept {
  try {
    if (!fs::exists(folder / kWorkFolder) && UnnamedShards(folder, manifest).empty()) return;
    const WorkFolder alone(folder);  // the shards may be those of a process that is about to name them
    RemoveUnnamedShards(folder, Manifest::Load(folder));
  } catch (...) {
    // As above.
  }
}

WorkFolder::WorkFolder(const fs::path& output) : output_(output), work_(output / kWorkFolder) {
  std::error_code error;
  created_output_ = fs::create_directories(output_, error);
  if (error) ThrowSystemError(error.value(), "create folder", output_.native());
  try {
    Lock();
  } catch (...) {
    if (created_output_) fs::remove(output_, error);  // only where it is empty
    throw;
  }
  RemovePartials();  // what a killed run left behind; the lock says that nobody works on it
}

void WorkFolder::Lock() {
  const fs::path path = work_ / "lock";
  for (int tries = 0; tries < kLockTries; ++tries) {
    if (mkdir(work_.c_str(), 0777) != 0 && errno != EEXIST) ThrowSystemError(errno, "create folder", work_.native());
    // Never through a link: what lies behind it is not ours to lock, write or remove.
    work_fd_ = UniqueFd(open(work_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!work_fd_ && errno == ENOENT) continue;  // as below
    if (!work_fd_) {
      if (errno == ELOOP || errno == ENOTDIR)
        throw Error(ErrorCode::kInvalidArgument,
                    Escaped(work_.native()) + " is a link or a file, not a work folder: remove it");
      ThrowSystemError(errno, "open folder", work_.native());
    }
    lock_ = UniqueFd(openat(work_fd_.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
    if (!lock_) {
      if (errno == ENOENT) continue;  // the other process just left and took the folder along
      ThrowSystemError(errno, "open", path.native());
    }
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        throw Error(ErrorCode::kIo, "another process is packing into " + Escaped(output_.native()) +
                                        ": wait for it or name another folder");
      if (errno == ENOLCK || errno == EOPNOTSUPP)
        return;  // a file system without locks: shards are named by content, double work is harmless
      ThrowSystemError(errno, "lock", path.native());
    }
    struct stat ours, there;
    const bool same = fstat(lock_.get(), &ours) == 0 && stat(path.c_str(), &there) == 0 &&
                      ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
    if (same) return;  // else: locked a file that its last holder has removed
  }
  throw Error(ErrorCode::kIo, "cannot lock " + Escaped(path.native()));
}

WorkFolder::~WorkFolder() {
  RemoveWork();
  std::error_code ignored;
  if (created_output_) fs::remove(output_, ignored);  // only where it is empty
}

// Only files of our own names, in this folder itself: a deletion never goes down a tree, nor through a link.
void WorkFolder::RemovePartials() noexcept {
  try {
    std::error_code error;
    std::vector<std::string> partials;
    for (fs::directory_iterator entry(work_, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      const std::string name = entry->path().filename().native();
      if (IsPartialName(name)) partials.push_back(name);
    }
    for (const std::string& name : partials) unlinkat(work_fd_.get(), name.c_str(), 0);
  } catch (...) {
    // The next run tries again.
  }
}

void WorkFolder::RemoveWork() noexcept {
  RemovePartials();
  unlinkat(work_fd_.get(), "lock", 0);
  rmdir(work_.c_str());  // only where nothing else lies there
}

fs::path WorkFolder::PartialPath(std::uint64_t shard) const {
  return work_ / ("shard-" + std::to_string(shard) + ".partial");
}

void WorkFolder::Publish(std::uint64_t shard, const std::string& name) {
  const fs::path target = output_ / name;
  if (rename(PartialPath(shard).c_str(), target.c_str()) != 0)
    ThrowSystemError(errno, "rename into place", target.native());
}

void WorkFolder::SyncOutput() const { SyncFolder(output_); }

}  // namespace shardpack
