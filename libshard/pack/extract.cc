#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "libshard/pack/tar_writer.h"
#include "libshard/pack/task_arena.h"
#include "libshard/store/unique_fd.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

// Records written between two looks at `stop` and two reports of progress.
constexpr std::uint64_t kStretch = 1024;
constexpr std::uint64_t kTaskRecords = 32;

// A key becomes a path below the output only where each of its parts is a plain name.
void CheckSafe(const Dataset& dataset, std::uint64_t index) {
  const std::string_view key = dataset.Key(index);
  bool safe = !key.empty() && key.find('\0') == std::string_view::npos;
  for (std::size_t at = 0; safe && at <= key.size();) {
    const std::size_t end = std::min(key.find('/', at), key.size());
    const std::string_view part = key.substr(at, end - at);
    safe = !part.empty() && part != "." && part != "..";
    at = end + 1;
  }
  if (safe) return;
  const Dataset::Place place = dataset.PlaceOf(index);
  throw Error(ErrorCode::kCorruption, Location{dataset.shard(place.shard).path().native(), place.record, std::nullopt},
              "the key " + Escaped(key) + " would leave the output folder");
}

void WriteNewFile(int root, const std::string& output, const std::string& path, Bytes bytes) {
  UniqueFd file(openat(root, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file) ThrowSystemError(errno, "create", output + "/" + path);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      unlinkat(root, path.c_str(), 0);  // half a file would look like a whole one
      ThrowSystemError(error, "write", output + "/" + path);
    }
    done += static_cast<std::size_t>(n);
  }
}

// Makes the folders that the keys [begin, end) need; equal ones follow each other, so most are known already.
void MakeFolders(const Dataset& dataset, std::uint64_t begin, std::uint64_t end, int root, const std::string& output,
                 std::set<std::string>& made) {
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::string_view key = dataset.Key(i);
    const auto last = key.rfind('/');
    if (last == std::string_view::npos || made.contains(std::string(key.substr(0, last)))) continue;
    for (std::size_t slash = key.find('/'); slash != std::string_view::npos; slash = key.find('/', slash + 1)) {
      const std::string folder(key.substr(0, slash));
      if (made.contains(folder)) continue;
      if (mkdirat(root, folder.c_str(), 0777) != 0 && errno != EEXIST)
        ThrowSystemError(errno, "create folder", output + "/" + folder);
      made.insert(folder);
    }
  }
}

UniqueFd OpenEmptyFolder(const fs::path& output) {
  std::error_code error;
  fs::create_directories(output, error);
  if (error) ThrowSystemError(error.value(), "create folder", output.native());
  if (!fs::is_empty(output, error) && !error) {
    throw Error(ErrorCode::kInvalidArgument, "the output folder " + Escaped(output.native()) +
                                                 " is not empty: nothing is overwritten; name another folder");
  }
  UniqueFd root(open(output.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) ThrowSystemError(errno, "open folder", output.native());
  return root;
}

class Extraction {
 public:
  explicit Extraction(const ExtractOptions& options) : options_(options), dataset_(Dataset::Open(options.dataset)) {
    progress_.stage = "extracting";
    progress_.inputs_total = dataset_.size();
    progress_.bytes_total = dataset_.manifest().bytes_in;
    // Before the first file is written: a dataset with one bad key leaves nothing behind.
    for (std::uint64_t i = 0; i < dataset_.size(); ++i) CheckSafe(dataset_, i);
  }

  std::uint64_t ToFolder() {
    const UniqueFd root = OpenEmptyFolder(options_.output);
    const std::string output = options_.output.native();
    std::set<std::string> made;
    for (std::uint64_t begin = 0; begin < dataset_.size(); begin += kStretch) {
      const std::uint64_t end = std::min(dataset_.size(), begin + kStretch);
      MakeFolders(dataset_, begin, end, root.get(), output, made);
      ParallelFor(begin, end, kTaskRecords, [&](std::uint64_t i) {
        thread_local std::vector<std::byte> bytes;
        dataset_.Read(i, bytes);
        WriteNewFile(root.get(), output, std::string(dataset_.Key(i)), bytes);
      });
      Report(begin, end);
    }
    return dataset_.size();
  }

  std::uint64_t ToTar() {
    TarWriter tar(options_.output);
    std::vector<std::byte> bytes;
    for (std::uint64_t begin = 0; begin < dataset_.size(); begin += kStretch) {
      const std::uint64_t end = std::min(dataset_.size(), begin + kStretch);
      for (std::uint64_t i = begin; i < end; ++i) {
        dataset_.Read(i, bytes);
        tar.Add(dataset_.Key(i), bytes);
      }
      Report(begin, end);
    }
    tar.Finish();
    return dataset_.size();
  }

 private:
  void Report(std::uint64_t begin, std::uint64_t end) {
    if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
    for (std::uint64_t i = begin; i < end; ++i) progress_.bytes_done += dataset_.Info(i).raw_bytes;
    progress_.inputs_done = end;
    if (options_.progress) options_.progress(progress_);
  }

  const ExtractOptions& options_;
  const Dataset dataset_;
  PackProgress progress_;
};

}  // namespace

std::uint64_t Extract(const ExtractOptions& options) {
  Extraction extraction(options);
  return options.to == ExtractTo::kTar ? extraction.ToTar() : extraction.ToFolder();
}

}  // namespace shardpack
