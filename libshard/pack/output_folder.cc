#include "libshard/pack/output_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <set>
#include <vector>

#include "shardpack/error.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

bool IsOurs(std::string_view name) {
  return name == kWorkFolder || name.starts_with(kLedgerName) || name.starts_with(kManifestName) ||
         name.starts_with("." + std::string(kManifestName)) || IsShardFileName(name);
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

// What LookAtOutput() finds by names alone.
struct Names {
  bool manifest = false, work = false;
  std::string foreign, shard;  // one of each: the least, so that the message is always the same
};

Names NamesIn(const fs::path& folder) {
  const auto note = [](const std::string& name, std::string& least) {
    if (least.empty() || name < least) least = name;
  };
  Names names;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) ThrowSystemError(error.value(), "read folder", folder.native());
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().native();
    names.manifest |= name == kManifestName;
    names.work |= name == kWorkFolder;
    if (!IsOurs(name)) note(name, names.foreign);
    if (IsShardFileName(name)) note(name, names.shard);
  }
  // A failed step is the last one: what it hides may be a dataset.
  if (error) ThrowSystemError(error.value(), "read folder", folder.native());
  return names;
}

// Whether it is there now. Where the system does not say, it may be.
bool MayExist(const fs::path& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 || errno != ENOENT;
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
  const Names names = NamesIn(folder);
  if (!names.manifest) {
    if (!names.foreign.empty()) {
      throw Error(ErrorCode::kInvalidArgument, "the output folder " + Escaped(folder.native()) +
                                                   " is not empty and holds no dataset (" + Escaped(names.foreign) +
                                                   " lies there): name another folder");
    }
    // Shards of a conversion under way have its work folder beside them, which goes only after their manifest has come.
    // These would be removed as shards that no manifest names, and may be all that is left of a dataset.
    const bool alone = !names.shard.empty() && !names.work && !MayExist(folder / kWorkFolder);
    if (alone && !MayExist(folder / kManifestName)) {
      throw Error(ErrorCode::kInvalidArgument, "the output folder " + Escaped(folder.native()) +
                                                   " holds shards but no dataset.json (" + names.shard +
                                                   " lies there): move them away or name another folder");
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

}  // namespace shardpack
