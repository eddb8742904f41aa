#include "shardpack/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "libshard/store/replace_file.h"
#include "libshard/store/unique_fd.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

// The manifest of a hundred million classes and shards is far below this.
constexpr std::uintmax_t kMaxManifestBytes = std::uintmax_t{1} << 30;

std::string ReadWhole(const std::filesystem::path& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) ThrowSystemError(errno, "open", path.string());
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowSystemError(errno, "read", path.string());
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMaxManifestBytes)
      throw Error(ErrorCode::kCorruption, Location{path.string(), {}, {}}, "no manifest is this long");
  }
}

}  // namespace

std::string_view Name(LabelKind kind) {
  switch (kind) {
    case LabelKind::kClass:
      return "class";
    case LabelKind::kInteger:
      return "integer";
    case LabelKind::kList:
      return "list";
    case LabelKind::kFloat:
      break;
  }
  return "float";
}

Manifest Manifest::Load(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestName;
  std::string text;
  try {
    text = ReadWhole(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kNotFound, "no " + std::string(kManifestName) + " in " + Escaped(folder.string()));
  }
  return FromJson(text, path.string());
}

void Manifest::Commit(const std::filesystem::path& folder) const {
  // Beside its final place, for a rename must not cross file systems; hidden, and overwritten by the next attempt.
  const std::filesystem::path unfinished = folder / (std::string(".").append(kManifestName) + ".partial");
  ReplaceFile(unfinished, folder / kManifestName, ToJson());
  SyncFolder(folder);
}

}  // namespace shardpack
