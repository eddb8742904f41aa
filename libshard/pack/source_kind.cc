#include "libshard/pack/source_kind.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "libshard/pack/archive_file.h"
#include "libshard/pack/crc32c.h"
#include "libshard/store/coding.h"
#include "libshard/store/unique_fd.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHdf5Magic("\x89HDF\r\n\x1a\n", 8);
constexpr std::string_view kShardMagic("\x89SHPK\r\n\x1a", 8);
constexpr std::size_t kHeadBytes = 4096;

struct NamedForm {
  std::string_view ending;
  SourceForm form;
};
constexpr NamedForm kNamedForms[] = {{".csv", SourceForm::kCsv},
                                     {".jsonl", SourceForm::kJsonl},
                                     {".ndjson", SourceForm::kJsonl},
                                     {".tar", SourceForm::kTar},
                                     {".tar.gz", SourceForm::kTar},
                                     {".tgz", SourceForm::kTar},
                                     {".tar.zst", SourceForm::kTar},
                                     {".tzst", SourceForm::kTar},
                                     {".zip", SourceForm::kZip},
                                     {".tfrecord", SourceForm::kTfrecord},
                                     {".tfrecords", SourceForm::kTfrecord},
                                     {".tfrec", SourceForm::kTfrecord},
                                     {".tfrecord.gz", SourceForm::kTfrecord},
                                     {".tfrecords.gz", SourceForm::kTfrecord},
                                     {".h5", SourceForm::kArrays},
                                     {".hdf5", SourceForm::kArrays},
                                     {".shard", SourceForm::kDataset}};

[[noreturn]] void ThrowWrong(const fs::path& path, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, Location{path.native(), {}, {}}, what);
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "train-00003-of-01024", as TensorFlow's own tools name the files of a data set.
bool IsNumberedName(std::string_view name) {
  const std::size_t of = name.rfind("-of-");
  if (of == std::string_view::npos || !IsDigits(name.substr(of + 4))) return false;
  const std::size_t dash = name.substr(0, of).rfind('-');
  return dash != std::string_view::npos && IsDigits(name.substr(dash + 1, of - dash - 1));
}

std::optional<SourceForm> FormOfName(const fs::path& path) {
  std::string name = path.filename().native();
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (name == kManifestName) return SourceForm::kDataset;
  for (const NamedForm& named : kNamedForms) {
    if (name.ends_with(named.ending)) return named.form;
  }
  if (IsNumberedName(name)) return SourceForm::kTfrecord;
  return std::nullopt;
}

// HDF5's signature may stand behind a block of the user's own.
bool IsHdf5(std::string_view head) {
  for (const std::size_t at : {0, 512, 1024, 2048}) {
    if (head.size() > at && head.substr(at).starts_with(kHdf5Magic)) return true;
  }
  return false;
}

// The length of the first record has a checksum.
bool IsTfrecord(std::string_view head) {
  return head.size() >= 12 && MaskedCrc32c(AsBytes(head.substr(0, 8))) == Load<std::uint32_t>(head.data() + 8);
}

bool IsTar(std::string_view head) {
  // gzip and zstd may hold anything; of sources a tar is the likely one, and opening it tells.
  return head.starts_with("\x1f\x8b") || head.starts_with("\x28\xb5\x2f\xfd") ||
         (head.size() >= 262 && head.substr(257).starts_with("ustar"));
}

std::optional<SourceForm> FormOfHead(std::string_view head, const PackOptions& options) {
  if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) return SourceForm::kZip;
  if (IsHdf5(head)) return SourceForm::kArrays;
  if (head.starts_with(kShardMagic)) return SourceForm::kDataset;
  if (IsTfrecord(head)) return SourceForm::kTfrecord;
  if (IsTar(head)) return SourceForm::kTar;
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::size_t text = head.find_first_not_of(" \t\r\n");
  if (text == std::string_view::npos) return std::nullopt;
  if (head[text] == '{') return SourceForm::kJsonl;
  const std::string_view line = head.substr(text, head.find_first_of("\r\n", text) - text);
  const bool is_header = line.find(options.path_column) != std::string_view::npos &&
                         line.find(options.label_column) != std::string_view::npos;
  if (is_header && line.find(',') != std::string_view::npos) return SourceForm::kCsv;
  return std::nullopt;
}

bool IsArchiveOrList(std::string_view name) {
  const auto form = FormOfName(fs::path(name));
  return form && *form != SourceForm::kDataset;
}

// A folder of archives or lists is none of classes. A first look is enough: a picture or a folder in it says that it
// is.
void CheckHasNoFilesToName(const fs::path& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) ThrowSystemError(errno, "open folder", path.native());
  std::string first;
  std::uint64_t count = 0;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with('.')) continue;
    std::error_code ignored;
    const bool is_folder =
        entry->d_type == DT_DIR || (entry->d_type != DT_REG && fs::is_directory(path / name, ignored));
    if (is_folder || IsCandidateName(name)) return;
    if (!IsArchiveOrList(name)) continue;
    ++count;
    if (first.empty() || name < first) first = name;
  }
  if (count == 0) return;
  ThrowWrong(path, "is a folder without class folders, but with " + std::to_string(count) +
                       (count == 1 ? " archive or list (" : " archives or lists (") + Escaped(first) +
                       (count == 1 ? ")" : ", ...)") + ": name the files themselves, as " +
                       Escaped((path / first).native()));
}

SourceForm FormOfFolder(const fs::path& path, const PackOptions& options) {
  struct stat status;
  const bool has_manifest = stat((path / kManifestName).c_str(), &status) == 0;
  switch (options.from) {
    case SourceKind::kAuto:
      if (has_manifest) return SourceForm::kDataset;
      break;
    case SourceKind::kFolder:
      break;
    case SourceKind::kDataset:
      if (!has_manifest) ThrowWrong(path, "is a folder without dataset.json: no dataset");
      return SourceForm::kDataset;
    default:
      ThrowWrong(path, "is a folder: --from asks for a file");
  }
  CheckHasNoFilesToName(path);
  return SourceForm::kFolder;
}

SourceForm GuessedForm(const fs::path& path, const PackOptions& options) {
  if (const auto form = FormOfName(path)) return *form;
  if (const auto form = FormOfHead(ArchiveFile(path).Head(kHeadBytes), options)) return *form;
  if (IsCandidateName(path.filename().native())) {
    ThrowWrong(path, "is a picture: a source is a folder of class folders, a list or an archive of pictures");
  }
  ThrowWrong(
      path,
      "is of no known kind of source: a folder of class folders, .csv, .jsonl, .tar (.gz, .zst), .zip, .tfrecord, "
      "a dataset or an HDF5 file; --from says which it is");
}

SourceForm FormOfFile(const fs::path& path, const PackOptions& options) {
  switch (options.from) {
    case SourceKind::kAuto:
      break;
    case SourceKind::kFolder:
      ThrowWrong(path, "is not a folder");
    case SourceKind::kCsv:
      return SourceForm::kCsv;
    case SourceKind::kJsonl:
      return SourceForm::kJsonl;
    case SourceKind::kTar:
      return SourceForm::kTar;
    case SourceKind::kZip:
      return SourceForm::kZip;
    case SourceKind::kTfrecord:
      return SourceForm::kTfrecord;
    case SourceKind::kDataset:
      return IsHdf5(ArchiveFile(path).Head(kHeadBytes)) ? SourceForm::kArrays : SourceForm::kDataset;
  }
  return GuessedForm(path, options);
}

}  // namespace

SourceForm FormOf(const fs::path& path, const PackOptions& options) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) ThrowSystemError(errno, "open", path.native());
  if (S_ISDIR(status.st_mode)) return FormOfFolder(path, options);
  if (!S_ISREG(status.st_mode)) ThrowWrong(path, "is neither a folder nor a regular file");
  return FormOfFile(path, options);
}

}  // namespace shardpack
