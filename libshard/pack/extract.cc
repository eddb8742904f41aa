#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "libshard/pack/extract_names.h"
#include "libshard/pack/tar_writer.h"
#include "libshard/pack/task_arena.h"
#include "libshard/store/unique_fd.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "shardpack/transcode.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

// Records written between two looks at `stop` and two reports of progress.
constexpr std::uint64_t kStretch = 1024;
constexpr std::uint64_t kTaskRecords = 32;

// A name becomes a path below the output only where each of its parts is a plain name.
void CheckSafe(const Dataset& dataset, std::uint64_t index, std::string_view key) {
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
              "the name " + Escaped(key) + " would leave the output folder");
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

// Makes the folders that the names need; equal ones follow each other, so most are known already.
void MakeFolders(const std::vector<std::string>& names, int root, const std::string& output,
                 std::set<std::string>& made) {
  for (const std::string& key : names) {
    const auto last = key.rfind('/');
    if (last == std::string::npos || made.contains(key.substr(0, last))) continue;
    for (std::size_t slash = key.find('/'); slash != std::string::npos; slash = key.find('/', slash + 1)) {
      const std::string folder = key.substr(0, slash);
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
  explicit Extraction(const ExtractOptions& options)
      : options_(options), dataset_(Dataset::Open(options.dataset)), names_(dataset_) {
    progress_.stage = "extracting";
    progress_.inputs_total = dataset_.size();
    progress_.bytes_total = dataset_.manifest().bytes_in;
    // Before the first file is written: a dataset with one bad name leaves nothing behind.
    for (std::uint64_t i = 0; i < dataset_.size(); ++i) CheckSafe(dataset_, i, names_.Name(i));
  }

  std::uint64_t ToFolder() {
    const UniqueFd root = OpenEmptyFolder(options_.output);
    const std::string output = options_.output.native();
    std::set<std::string> made;
    for (std::uint64_t begin = 0; begin < dataset_.size(); begin += kStretch) {
      const std::uint64_t end = std::min(dataset_.size(), begin + kStretch);
      std::vector<std::string> names;
      for (std::uint64_t i = begin; i < end; ++i) names.push_back(names_.Name(i));
      MakeFolders(names, root.get(), output, made);
      ParallelFor(begin, end, kTaskRecords, [&](std::uint64_t i) {
        thread_local std::vector<std::byte> bytes;
        ReadFileOf(i, bytes);
        WriteNewFile(root.get(), output, names[i - begin], bytes);
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
        ReadFileOf(i, bytes);
        tar.Add(names_.Name(i), bytes);
      }
      Report(begin, end);
    }
    tar.Finish();
    return dataset_.size();
  }

 private:
  // The record as a file that other programs read.
  void ReadFileOf(std::uint64_t i, std::vector<std::byte>& bytes) const {
    dataset_.Read(i, bytes);
    if (dataset_.Info(i).encoding != Encoding::kPixels) return;
    try {
      thread_local Samples samples;
      DecodePixels(bytes, ImageLimits{~std::uint64_t{0} >> 8}, samples);  // it was let in when it was packed
      bytes = EncodePng(samples);
    } catch (const Error& error) {
      const Dataset::Place place = dataset_.PlaceOf(i);
      throw Error(ErrorCode::kCorruption,
                  Location{dataset_.shard(place.shard).path().native(), place.record, dataset_.Info(i).offset},
                  error.reason());
    }
  }

  void Report(std::uint64_t begin, std::uint64_t end) {
    if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
    for (std::uint64_t i = begin; i < end; ++i) progress_.bytes_done += dataset_.Info(i).raw_bytes;
    progress_.inputs_done = end;
    if (options_.progress) options_.progress(progress_);
  }

  const ExtractOptions& options_;
  const Dataset dataset_;
  const ExtractNames names_;
  PackProgress progress_;
};

}  // namespace

std::uint64_t Extract(const ExtractOptions& options) {
  Extraction extraction(options);
  return options.to == ExtractTo::kTar ? extraction.ToTar() : extraction.ToFolder();
}

}  // namespace shardpack
