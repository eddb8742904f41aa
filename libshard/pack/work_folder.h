// OUT/.shardpack: who works in it, what lies in it, what may be removed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/pack/file_lock.h"
#include "libshard/store/unique_fd.h"
#include "shardpack/record.h"

namespace shardpack {

inline constexpr char kPlanName[] = "plan";
inline constexpr char kPlannerLock[] = "planner";
inline constexpr char kSealLock[] = "seal";

// "part-2-of-4", and back; nullopt also where there cannot be as many parts.
std::string PartLockName(std::uint32_t index, std::uint32_t count);
struct PartOfName {
  std::uint32_t index = 0, count = 1;
};
std::optional<PartOfName> ParsePartLockName(std::string_view name);

// Whether a file of this name in a work folder is one of ours.
bool IsWorkFileName(std::string_view name);

// Names of what lies in a folder, in byte order. Throws Error with kIo.
std::vector<std::string> NamesIn(int folder, const std::filesystem::path& shown);

// OUT/.shardpack, opened without following a link; empty where there is none. Throws Error: kInvalidArgument where it
// is a link or a file, kIo.
UniqueFd OpenWorkFolder(const std::filesystem::path& work);

// Holds OUT and OUT/.shardpack, together with other processes that pack into it or alone, by a lock that dies with the
// process. Files of its own carry a token that no other process has, and a lock file of that token says whether it
// lives: so what a dead process left is known, and removed by who starts next.
//
// The destructor removes what this process has unfinished; where there is no plan and nobody else, also our other
// files, the folder where nothing else lies in it, and OUT where this object created it and it is empty.
class WorkFolder {
 public:
  enum class Use { kAlone, kShared };

  // Throws Error: kIo where another process is at work in the other manner, or the system refuses; kInvalidArgument
  // with kAlone where a conversion is unfinished here.
  explicit WorkFolder(const std::filesystem::path& output, Use use = Use::kAlone);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& output() const noexcept { return output_; }
  const std::filesystem::path& path() const noexcept { return work_; }
  const std::string& token() const noexcept { return token_; }
  int fd() const noexcept { return fd_.get(); }
  bool HasPlan() const;

  std::filesystem::path PartialPath(std::uint64_t shard) const;
  // Gives a finished shard its name in the output folder.
  void Publish(std::uint64_t shard, const std::string& name) const;
  // Makes the names in the output folder survive a power cut.
  void SyncOutput() const;

  // Opens a lock file; it is not held yet.
  FileLock OpenLock(const std::string& name) const;
  // Who holds one of the locks here, for messages: " (host node7, process 4711)", or nothing.
  std::string OtherProcess() const;

  // From shared to alone. False where others are here; then nothing is held any more until ShareAgain().
  bool TryAlone();
  void ShareAgain();
  // Removes the plan and the journal. Precondition: alone.
  void RemovePlan() noexcept;
  // Removes all that is ours, and the folder where nothing else lies there. Precondition: alone, or sealed on a file
  // system without locks.
  void RemoveAll() noexcept;

 private:
  void Enter(Use use);
  bool TryEnter(Use use);
  void MakeToken();
  void RemoveStale() noexcept;
  void RemoveOwn() noexcept;
  void RefuseUnfinished();

  std::filesystem::path output_, work_;
  bool created_output_ = false, gone_ = false;
  UniqueFd fd_;
  FileLock lock_, alive_;
  std::string token_;
};

}  // namespace shardpack
