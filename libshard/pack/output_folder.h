// The folder a dataset is made in: who may write there, what lies there, how a new dataset takes the old one's place.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "libshard/store/unique_fd.h"
#include "shardpack/manifest.h"

namespace shardpack {

// What lies in `folder` before packing. Nothing is changed.
struct OldDataset {
  std::optional<Manifest> manifest;
  std::string damage;  // why it is not usable, where it is not: its manifest cannot be read, a shard is missing
};
// Throws Error with kInvalidArgument where the folder holds files that are not ours, kIo.
OldDataset LookAtOutput(const std::filesystem::path& folder);

// "shard-00012-5f3a9c01.shard"
std::string ShardFileName(std::uint64_t number, const Digest128& file_digest);
bool IsShardFileName(std::string_view name);

// Removes shards in `folder` that `manifest` does not name. Never throws: what cannot be removed stays.
void RemoveUnnamedShards(const std::filesystem::path& folder, const Manifest& manifest) noexcept;

// On a rerun of what is complete: removes what a killed run left beside the dataset, unless there is nothing or another
// process works there.
void CleanUpBeside(const std::filesystem::path& folder, const Manifest& manifest) noexcept;

// Holds OUT and OUT/.shardpack for this process alone, by a lock that dies with the process. The destructor removes our
// files in the work folder and then the folder, where nothing else lies in it, and OUT where this object created it and
// it is empty; a shard that was moved into OUT and never named by a manifest goes too.
class WorkFolder {
 public:
  // Throws Error with kIo where another process packs into `output`, or the system refuses.
  explicit WorkFolder(const std::filesystem::path& output);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  std::filesystem::path PartialPath(std::uint64_t shard) const;
  // Gives a finished shard its name in the output folder.
  void Publish(std::uint64_t shard, const std::string& name);
  // Makes the names in the output folder survive a power cut.
  void SyncOutput() const;

 private:
  void Lock();
  void RemovePartials() noexcept;
  void RemoveWork() noexcept;

  std::filesystem::path output_, work_;
  bool created_output_ = false;
  UniqueFd work_fd_, lock_;
};

}  // namespace shardpack
