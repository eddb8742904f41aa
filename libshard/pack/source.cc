#include "libshard/pack/source.h"

#include <sys/stat.h>

#include <cerrno>
#include <map>

#include "libshard/pack/source_kind.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

std::unique_ptr<Source> OpenOne(const std::filesystem::path& path, const PackOptions& options) {
  switch (FormOf(path, options)) {
    case SourceForm::kFolder:
      return OpenFolderSource(path);
    case SourceForm::kCsv:
      return OpenListSource(path, SourceKind::kCsv, options);
    case SourceForm::kJsonl:
      return OpenListSource(path, SourceKind::kJsonl, options);
    case SourceForm::kTar:
      return OpenTarSource(path);
    case SourceForm::kZip:
      return OpenZipSource(path);
    case SourceForm::kTfrecord:
      return OpenTfrecordSource(path, options);
    case SourceForm::kDataset:
      return OpenDatasetSource(path);
    case SourceForm::kArrays:
      return OpenArraysSource(path);
  }
  throw Error(ErrorCode::kInvalidArgument, Location{path.native(), {}, {}}, "is of no known kind of source");
}

// Finds a file or folder that comes a second time, also through a link.
class SeenSources {
 public:
  void Add(const std::filesystem::path& path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0) ThrowSystemError(errno, "open", path.native());
    const auto [before, is_new] = seen_.emplace(std::pair(status.st_dev, status.st_ino), path);
    if (is_new) return;
    throw Error(
        ErrorCode::kInvalidArgument,
        "the source " + Escaped(before->second.native()) +
            (before->second == path ? " is given twice" : " is given a second time as " + Escaped(path.native())));
  }

 private:
  std::map<std::pair<dev_t, ino_t>, std::filesystem::path> seen_;
};

}  // namespace

std::vector<std::unique_ptr<Source>> OpenSources(const PackOptions& options) {
  if (options.sources.empty()) throw Error(ErrorCode::kInvalidArgument, "no source is given");
  std::vector<std::unique_ptr<Source>> sources;
  SeenSources seen;
  for (const std::filesystem::path& path : options.sources) {
    sources.push_back(OpenOne(path, options));
    seen.Add(path);
  }
  return sources;
}

}  // namespace shardpack
