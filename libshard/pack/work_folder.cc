#include "libshard/pack/work_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <random>

#include "libshard/pack/finished_shards.h"
#include "libshard/pack/part.h"
#include "libshard/store/replace_file.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr char kLock[] = "lock";
constexpr std::string_view kAlive = "process-", kPartial = ".partial";
// Each try is lost only to a process that ends in that very moment.
constexpr int kEnterTries = 1000;

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "TOKEN" of "shard-00012.TOKEN.partial", "plan.TOKEN.new"; empty where there is none.
std::string_view TokenOf(std::string_view name) {
  if (name.starts_with(kAlive)) return name.substr(kAlive.size());
  const auto end = name.rfind('.');
  if (end == std::string_view::npos || end == 0) return {};
  const auto begin = name.rfind('.', end - 1);
  return begin == std::string_view::npos ? std::string_view() : name.substr(begin + 1, end - begin - 1);
}

// What a process makes for itself alone.
bool IsOwnedName(std::string_view name) {
  if (name.starts_with(kAlive)) return true;
  if (name.starts_with("plan.") && name.ends_with(".new")) return true;
  return (name.starts_with("shard-") || name.starts_with("finished-")) && name.ends_with(kPartial);
}

bool IsJournalName(std::string_view name) { return name.starts_with("finished-") && IsNumber(name.substr(9)); }

}  // namespace

std::string PartLockName(std::uint32_t index, std::uint32_t count) {
  return "part-" + std::to_string(index) + "-of-" + std::to_string(count);
}

std::optional<PartOfName> ParsePartLockName(std::string_view name) {
  const auto middle = name.find("-of-");
  if (!name.starts_with("part-") || middle == std::string_view::npos) return std::nullopt;
  const std::string_view index = name.substr(5, middle - 5), count = name.substr(middle + 4);
  PartOfName part;
  if (!IsNumber(index) || !IsNumber(count)) return std::nullopt;
  if (std::from_chars(index.begin(), index.end(), part.index).ec != std::errc()) return std::nullopt;
  if (std::from_chars(count.begin(), count.end(), part.count).ec != std::errc()) return std::nullopt;
  if (part.index >= part.count || part.count > kMostParts) return std::nullopt;
  return part;
}

bool IsWorkFileName(std::string_view name) {
  return name == kLock || name == kPlanName || name == kPlannerLock || name == kSealLock || IsOwnedName(name) ||
         IsJournalName(name) || ParsePartLockName(name) || (name.starts_with("sort-") && name.size() == 11);
}

std::vector<std::string> NamesIn(int folder, const fs::path& shown) {
  // Opened anew, for a duplicate shares its position with all others.
  UniqueFd fd(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) ThrowSystemError(errno, "open folder", shown.native());
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd.get()), closedir);
  if (!stream) ThrowSystemError(errno, "read folder", shown.native());
  fd.Release();
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = readdir(stream.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) ThrowSystemError(errno, "read folder", shown.native());
  std::sort(names.begin(), names.end());
  return names;
}

UniqueFd OpenWorkFolder(const fs::path& work) {
  // Never through a link: what lies behind it is not ours to lock, write or remove.
  UniqueFd fd(open(work.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd || errno == ENOENT) return fd;
  if (errno == ELOOP || errno == ENOTDIR) {
    throw Error(ErrorCode::kInvalidArgument,
                Escaped(work.native()) + " is a link or a file, not a work folder: remove it");
  }
  ThrowSystemError(errno, "open folder", work.native());
}

WorkFolder::WorkFolder(const fs::path& output, Use use) : output_(output), work_(output / kWorkFolder) {
  std::error_code error;
  created_output_ = fs::create_directories(output_, error);
  if (error) ThrowSystemError(error.value(), "create folder", output_.native());
  try {
    Enter(use);
    MakeToken();
    RemoveStale();
    if (use == Use::kAlone && HasPlan()) RefuseUnfinished();
  } catch (...) {
    if (lock_ && !HasPlan() && (use == Use::kAlone || TryAlone())) RemoveAll();
    if (created_output_) fs::remove(output_, error);  // only where it is empty
    throw;
  }
}

void WorkFolder::Enter(Use use) {
  for (int tries = 0; tries < kEnterTries; ++tries) {
    if (TryEnter(use)) return;
  }
  throw Error(ErrorCode::kIo, "cannot lock " + Escaped((work_ / kLock).native()));
}

// False where the folder went away in this moment, with the process that worked in it.
bool WorkFolder::TryEnter(Use use) {
  if (mkdir(work_.c_str(), 0777) != 0 && errno != EEXIST) {
    if (errno == ENOENT) {  // OUT went along
      fs::create_directories(output_);
      return false;
    }
    ThrowSystemError(errno, "create folder", work_.native());
  }
  fd_ = OpenWorkFolder(work_);
  if (!fd_) return false;
  try {
    lock_ = OpenLock(kLock);
  } catch (const Error& failure) {
    if (failure.code() == ErrorCode::kNotFound) return false;
    throw;
  }
  const FileLock::Mode mode = use == Use::kAlone ? FileLock::Mode::kAlone : FileLock::Mode::kShared;
  if (!lock_.TryForAMoment(mode)) {
    if (!lock_.IsThere(fd_.get(), kLock)) return false;
    std::string other = OtherProcess();
    lock_ = FileLock();
    throw Error(ErrorCode::kIo, "another process" + other + " is packing into " + Escaped(output_.native()) +
                                    ": wait for it or name another folder");
  }
  if (!lock_.IsThere(fd_.get(), kLock)) return false;  // locked what its last holder has removed
  if (use == Use::kAlone) lock_.WriteHolder();
  return true;
}

void WorkFolder::MakeToken() {
  std::random_device random;
  for (int tries = 0; tries < kEnterTries; ++tries) {
    char tail[40];
    std::snprintf(tail, sizeof tail, "-%d-%08x", static_cast<int>(getpid()), static_cast<unsigned>(random()));
    token_ = HostName() + tail;
    alive_ = OpenLock(std::string(kAlive) + token_);
    // Who just looked for what dead processes left may have taken it for such.
    if (alive_.Try(FileLock::Mode::kAlone) && alive_.IsThere(fd_.get(), std::string(kAlive) + token_)) return;
  }
  throw Error(ErrorCode::kIo, "cannot lock a file in " + Escaped(work_.native()));
}

void WorkFolder::RemoveStale() noexcept {
  try {
    for (const std::string& name : NamesIn(fd_.get(), work_)) {
      if (!IsOwnedName(name)) continue;
      const std::string token(TokenOf(name));
      if (token == token_) continue;
      const std::string alive_name = std::string(kAlive) + token;
      if (!token.empty()) {
        const auto state = LookAtLock(fd_.get(), alive_name);
        // Without locks nobody can tell.
        if (state && (state->held || !lock_.has_locks())) continue;
        if (name == alive_name) {
          FileLock dead = OpenLock(name);
          if (!dead.Try(FileLock::Mode::kAlone)) continue;
          unlinkat(fd_.get(), name.c_str(), 0);
          continue;
        }
      }
      unlinkat(fd_.get(), name.c_str(), 0);
    }
  } catch (...) {
    // The next run tries again.
  }
}

void WorkFolder::RefuseUnfinished() {
  if (IsCommitted(*this)) return RemovePlan();  // killed between the commit and the clean-up
  throw Error(ErrorCode::kInvalidArgument, "a conversion into " + Escaped(output_.native()) +
                                               " is unfinished: run its command again to finish it, or remove " +
                                               Escaped(work_.native()));
}

void WorkFolder::RemoveOwn() noexcept {
  if (token_.empty()) return;
  try {
    for (const std::string& name : NamesIn(fd_.get(), work_)) {
      if (IsOwnedName(name) && !name.starts_with(kAlive) && TokenOf(name) == token_)
        unlinkat(fd_.get(), name.c_str(), 0);
    }
    unlinkat(fd_.get(), (std::string(kAlive) + token_).c_str(), 0);
  } catch (...) {
    // The next run tries again.
  }
}

WorkFolder::~WorkFolder() {
  if (!gone_) RemoveOwn();
  // Whoever is the last to leave cleans up, also after a seal that another did. Without locks nobody knows who is the
  // last; what is committed needs no work files any more.
  bool alone = false;
  try {
    alone = TryAlone();
  } catch (const Error&) {
    // The system refuses even to say: then whoever comes next cleans up.
  }
  const bool over = HasPlan() && IsCommitted(*this);
  if (!gone_ && (over ? alone || !lock_.has_locks() : alone && !HasPlan())) RemoveAll();
  std::error_code ignored;
  if (created_output_) fs::remove(output_, ignored);  // only where it is empty
}

bool WorkFolder::HasPlan() const {
  struct stat status;
  return fstatat(fd_.get(), kPlanName, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

fs::path WorkFolder::PartialPath(std::uint64_t shard) const {
  char number[32];
  std::snprintf(number, sizeof number, "shard-%05llu.", static_cast<unsigned long long>(shard));
  return work_ / (number + token_ + std::string(kPartial));
}

void WorkFolder::Publish(std::uint64_t shard, const std::string& name) const {
  const fs::path target = output_ / name;
  if (rename(PartialPath(shard).c_str(), target.c_str()) != 0)
    ThrowSystemError(errno, "rename into place", target.native());
}

void WorkFolder::SyncOutput() const { SyncFolder(output_); }

FileLock WorkFolder::OpenLock(const std::string& name) const {
  return FileLock(fd_.get(), name, (work_ / name).native());
}

std::string WorkFolder::OtherProcess() const {
  std::vector<std::string> names = NamesIn(fd_.get(), work_);
  names.insert(names.begin(), kLock);
  for (const std::string& name : names) {
    if (name != kLock && name != kPlannerLock && name != kSealLock && !ParsePartLockName(name)) continue;
    const auto state = LookAtLock(fd_.get(), name);
    if (state && state->held && !state->holder.empty() && state->holder != OwnHolder())
      return " (" + state->holder + ")";
  }
  return "";
}

bool WorkFolder::TryAlone() { return lock_.Try(FileLock::Mode::kAlone) && lock_.has_locks(); }

void WorkFolder::ShareAgain() {
  if (lock_.TryForAMoment(FileLock::Mode::kShared) && lock_.IsThere(fd_.get(), kLock)) return;
  throw Error(ErrorCode::kIo, "another process is packing into " + Escaped(output_.native()) + ": wait for it");
}

void WorkFolder::RemovePlan() noexcept {
  try {
    // The plan first: without it the rest means nothing, whenever this ends.
    unlinkat(fd_.get(), kPlanName, 0);
    for (const std::string& name : NamesIn(fd_.get(), work_)) {
      if (IsJournalName(name)) unlinkat(fd_.get(), name.c_str(), 0);
    }
  } catch (...) {
    // The journal names its request: it cannot be taken for another's.
  }
}

void WorkFolder::RemoveAll() noexcept {
  try {
    unlinkat(fd_.get(), kPlanName, 0);
    for (const std::string& name : NamesIn(fd_.get(), work_)) {
      if (IsWorkFileName(name) && name != kLock) unlinkat(fd_.get(), name.c_str(), 0);
    }
    // The lock last: until then whoever comes waits for it.
    unlinkat(fd_.get(), kLock, 0);
    rmdir(work_.c_str());
    gone_ = true;
  } catch (...) {
    // The next run tries again.
  }
}

}  // namespace shardpack
