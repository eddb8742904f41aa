// Class folders: each folder directly under the root is a class, and pictures in deeper folders belong to their top
// folder.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "libshard/pack/file_reading.h"
#include "libshard/pack/source.h"
#include "libshard/pack/task_arena.h"
#include "libshard/store/unique_fd.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint32_t kNoFolder = ~0u;
constexpr char kDangling[] = "dangling link: it leads to no file";
// So many names of a folder are kept at a time, and looked at by several tasks where they are more than a few.
constexpr std::size_t kNamesAtOnce = 8192, kLookGrain = 256;

// A folder on the way down. Levels are walked one after another, so that no descriptor is held while its children are
// read and any depth and width is possible. All folders are kept, for what may be on the way down to others; no file
// is.
struct Folder {
  std::string path;  // relative to the root, with a slash at its end; empty: the root
  std::uint32_t parent = kNoFolder;
  dev_t device = 0;
  ino_t inode = 0;
  bool entered = false;  // false: a link back to a folder on the way down
  std::vector<std::string> children;

  // The class of what is in it.
  std::string_view Top() const { return std::string_view(path).substr(0, path.find('/')); }
};

class Walk {
 public:
  Walk(const std::filesystem::path& root, int root_fd, const std::atomic<bool>* stop, InputSink& sink)
      : root_(root), root_fd_(root_fd), stop_(stop), sink_(sink) {}

  void Run();

 private:
  std::string FullPath(const std::string& path) const;
  bool IsOnTheWayDown(const Folder& folder) const;
  void AddLevel(std::size_t begin, std::size_t end);
  void ReadFolder(Folder& folder);
  void TakeNames(const Folder& folder, int fd, std::vector<std::string>& names);
  void TakeFile(const Folder& folder, int fd, const std::string& name);
  void TakeRootFiles(const std::vector<std::string>& names);
  void AnnounceClasses();
  void WarnOfRootFiles();
  void LookAtStop() const {
    if (stop_ != nullptr && *stop_) throw Interrupted{};
  }

  const std::filesystem::path& root_;
  const int root_fd_;
  const std::atomic<bool>* stop_;
  InputSink& sink_;
  std::vector<Folder> folders_;  // the root is the first
  std::atomic<std::uint64_t> ignored_{0};
  std::uint64_t root_files_ = 0;
  std::string first_root_file_;  // by name
};

std::string Walk::FullPath(const std::string& path) const {
  std::string full = root_.native();
  if (!path.empty() && !full.ends_with('/')) full += '/';
  return full + path;
}

bool Walk::IsOnTheWayDown(const Folder& folder) const {
  for (std::uint32_t up = folder.parent; up != kNoFolder; up = folders_[up].parent) {
    if (folders_[up].device == folder.device && folders_[up].inode == folder.inode) return true;
  }
  return false;
}

unsigned char TypeOf(int fd, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return entry.d_type;
  struct stat status;
  if (fstatat(fd, entry.d_name, &status, 0) != 0) return DT_REG;  // a link that leads nowhere: bad if it is a candidate
  if (S_ISREG(status.st_mode)) return DT_REG;
  return S_ISDIR(status.st_mode) ? DT_DIR : DT_FIFO;
}

void Walk::TakeFile(const Folder& folder, int fd, const std::string& name) {
  FileLook look;
  try {
    look = LookAtFile(fd, name.c_str(), kDangling);
  } catch (const OutOfResources& lack) {
    ThrowSystemError(lack.error, lack.doing, FullPath(folder.path + name));
  }
  const std::string key = folder.path + name;
  FoundInput found;
  found.key = key;
  found.size = look.size;
  found.label.text = folder.Top();
  found.bad = look.bad;
  found.bad_code = look.bad_code;
  sink_.Add(found);
}

void Walk::TakeRootFiles(const std::vector<std::string>& names) {
  root_files_ += names.size();
  for (const std::string& name : names) {
    if (first_root_file_.empty() || name < first_root_file_) first_root_file_ = name;
  }
}

void Walk::TakeNames(const Folder& folder, int fd, std::vector<std::string>& names) {
  LookAtStop();
  if (folder.parent == kNoFolder) {
    TakeRootFiles(names);
  } else {
    // Isolated: who waits here must not start on another folder, and hold one more descriptor and its names.
    tbb::this_task_arena::isolate(
        [&] { ParallelFor(0, names.size(), kLookGrain, [&](std::uint64_t i) { TakeFile(folder, fd, names[i]); }); });
  }
  names.clear();
}

void Walk::ReadFolder(Folder& folder) {
  UniqueFd handle(
      openat(root_fd_, folder.path.empty() ? "." : folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle) ThrowSystemError(errno, "open folder", FullPath(folder.path));
  struct stat status;
  if (fstat(handle.get(), &status) != 0) ThrowSystemError(errno, "look at folder", FullPath(folder.path));
  folder.device = status.st_dev;
  folder.inode = status.st_ino;
  if (IsOnTheWayDown(folder)) return;
  folder.entered = true;

  const int fd = handle.get();
  std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd), closedir);
  if (!stream) ThrowSystemError(errno, "read folder", FullPath(folder.path));
  handle.Release();  // the stream closes it
  std::vector<std::string> names;
  std::uint64_t ignored = 0;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const bool hidden = name.starts_with('.');
    const unsigned char type = hidden ? static_cast<unsigned char>(DT_UNKNOWN) : TypeOf(fd, *entry);
    if (type == DT_DIR) {
      folder.children.emplace_back(name);
    } else if (type == DT_REG && IsCandidateName(name)) {
      names.emplace_back(name);
      if (names.size() == kNamesAtOnce) TakeNames(folder, fd, names);
    } else {
      ++ignored;
    }
  }
  if (errno != 0) ThrowSystemError(errno, "read folder", FullPath(folder.path));
  TakeNames(folder, fd, names);
  ignored_ += ignored;
}

void Walk::AddLevel(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    for (const std::string& name : std::exchange(folders_[i].children, {})) {
      Folder child;
      child.path = folders_[i].path + name + '/';
      child.parent = static_cast<std::uint32_t>(i);
      folders_.push_back(std::move(child));
    }
  }
}

void Walk::AnnounceClasses() {
  std::vector<std::string> names;
  for (const Folder& folder : folders_) {
    if (folder.parent == 0 && folder.entered) names.emplace_back(folder.Top());
  }
  std::sort(names.begin(), names.end());
  sink_.AddClasses(names, false);
}

void Walk::WarnOfRootFiles() {
  if (root_files_ == 0) return;
  sink_.AddIgnored(root_files_);
  sink_.Warn(Escaped(root_.native()) + ": " + std::to_string(root_files_) +
             (root_files_ == 1 ? " picture lies" : " pictures lie") + " in no class folder and " +
             (root_files_ == 1 ? "is" : "are") + " left out (" + Escaped(first_root_file_) +
             (root_files_ > 1 ? ", ...)" : ")"));
}

void Walk::Run() {
  folders_.emplace_back();
  for (std::size_t begin = 0; begin < folders_.size();) {
    const std::size_t end = folders_.size();
    ParallelFor(begin, end, 1, [&](std::uint64_t i) {
      LookAtStop();
      ReadFolder(folders_[i]);
    });
    AddLevel(begin, end);
    begin = end;
  }
  sink_.AddIgnored(ignored_);
  WarnOfRootFiles();
  AnnounceClasses();
}

class FolderSource : public Source {
 public:
  explicit FolderSource(const std::filesystem::path& path)
      : path_(path), root_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (!root_) ThrowSystemError(errno, "open folder", path.native());
  }

  SourceKind kind() const override { return SourceKind::kFolder; }
  void Scan(const std::atomic<bool>* stop, InputSink& sink) override { Walk(path_, root_.get(), stop, sink).Run(); }
  bool IsStream() const override { return false; }
  void Read(const PlannedInput& input, std::byte* to) override {
    ReadWholeFile(root_.get(), std::string(input.SourceKey()).c_str(), input.size, to);
  }
  bool IsAsPlanned(const PlannedInput& input) override {
    return LooksAsPlanned(root_.get(), std::string(input.SourceKey()).c_str(), kDangling, input);
  }
  std::string Describe(const PlannedInput& input) const override { return (path_ / input.SourceKey()).native(); }

 private:
  const std::filesystem::path path_;
  const UniqueFd root_;
};

}  // namespace

std::unique_ptr<Source> OpenFolderSource(const std::filesystem::path& path) {
  return std::make_unique<FolderSource>(path);
}

}  // namespace shardpack
