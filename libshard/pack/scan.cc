#include "libshard/pack/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "libshard/pack/task_arena.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"

namespace shardpack {
namespace {

constexpr std::uint32_t kNoFolder = ~0u;
// Above this many files a folder's sizes are asked for by several tasks.
constexpr std::size_t kParallelStat = 4096, kStatGrain = 256;

struct FoundFile {
  std::string name;
  std::uint64_t size = 0;
  int error = 0;
};

// A folder on the way down. Levels are walked one after another, so that no descriptor is held while its children are
// read and any depth and width is possible.
struct Folder {
  std::string path;  // relative to the root, with a slash at its end; empty: the root
  std::uint32_t parent = kNoFolder;
  dev_t device = 0;
  ino_t inode = 0;
  bool entered = false;  // false: a link back to a folder on the way down
  std::uint64_t ignored = 0;
  std::vector<FoundFile> files;       // sorted by name
  std::vector<std::string> children;  // names of folders, sorted by name + "/"
  std::vector<std::uint32_t> child_index;
};

struct Tree {
  std::filesystem::path root;
  int root_fd = -1;
  std::vector<Folder> folders;  // the root is the first
};

std::string FullPath(const Tree& tree, const std::string& path) {
  std::string full = tree.root.native();
  if (!path.empty() && !full.ends_with('/')) full += '/';
  return full + path;
}

bool IsOnTheWayDown(const Tree& tree, const Folder& folder) {
  for (std::uint32_t up = folder.parent; up != kNoFolder; up = tree.folders[up].parent) {
    if (tree.folders[up].device == folder.device && tree.folders[up].inode == folder.inode) return true;
  }
  return false;
}

unsigned char TypeOf(int fd, const dirent& entry, struct stat& status, int& error) {
  if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return entry.d_type;
  if (fstatat(fd, entry.d_name, &status, 0) != 0) {
    error = errno;
    return DT_REG;  // a link that leads nowhere: bad if its name is a candidate's
  }
  if (S_ISREG(status.st_mode)) return DT_REG;
  return S_ISDIR(status.st_mode) ? DT_DIR : DT_FIFO;
}

void Sort(Folder& folder) {
  std::sort(folder.files.begin(), folder.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  // In the order of whole keys a folder stands where its name and a slash stand.
  std::sort(folder.children.begin(), folder.children.end(),
            [](const auto& a, const auto& b) { return a + '/' < b + '/'; });
}

void AskForSizes(int fd, std::vector<FoundFile>& files) {
  const auto ask = [&](std::size_t i) {
    struct stat status;
    FoundFile& file = files[i];
    if (file.error != 0) return;
    if (fstatat(fd, file.name.c_str(), &status, 0) == 0) {
      file.size = static_cast<std::uint64_t>(status.st_size);
    } else {
      file.error = errno;
    }
  };
  if (files.size() < kParallelStat) {
    for (std::size_t i = 0; i < files.size(); ++i) ask(i);
  } else {
    ParallelFor(0, files.size(), kStatGrain, ask);
  }
}

void ReadFolder(const Tree& tree, Folder& folder) {
  UniqueFd handle(
      openat(tree.root_fd, folder.path.empty() ? "." : folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle) ThrowSystemError(errno, "open folder", FullPath(tree, folder.path));
  struct stat status;
  if (fstat(handle.get(), &status) != 0) ThrowSystemError(errno, "look at folder", FullPath(tree, folder.path));
  folder.device = status.st_dev;
  folder.inode = status.st_ino;
  if (IsOnTheWayDown(tree, folder)) return;
  folder.entered = true;

  const int fd = handle.get();
  std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(handle.get()), closedir);
  if (!stream) ThrowSystemError(errno, "read folder", FullPath(tree, folder.path));
  handle.Release();  // the stream closes it
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (name.starts_with('.')) {
      ++folder.ignored;
      continue;
    }
    int error = 0;
    const unsigned char type = TypeOf(fd, *entry, status, error);
    if (type == DT_DIR) {
      folder.children.emplace_back(name);
    } else if (type == DT_REG && IsCandidateName(name)) {
      folder.files.push_back({std::string(name), 0, error});
    } else {
      ++folder.ignored;
    }
  }
  if (errno != 0) ThrowSystemError(errno, "read folder", FullPath(tree, folder.path));
  AskForSizes(fd, folder.files);
  Sort(folder);
}

Tree Walk(const std::filesystem::path& root, int root_fd, const std::atomic<bool>* stop) {
  Tree tree;
  tree.root = root;
  tree.root_fd = root_fd;
  tree.folders.emplace_back();
  for (std::size_t begin = 0; begin < tree.folders.size();) {
    const std::size_t end = tree.folders.size();
    ParallelFor(begin, end, 1, [&](std::uint64_t i) {
      if (stop != nullptr && *stop) throw Interrupted{};
      ReadFolder(tree, tree.folders[i]);
    });
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t c = 0; c < tree.folders[i].children.size(); ++c) {
        Folder child;
        child.path = tree.folders[i].path + tree.folders[i].children[c] + '/';
        child.parent = static_cast<std::uint32_t>(i);
        tree.folders[i].child_index.push_back(static_cast<std::uint32_t>(tree.folders.size()));
        tree.folders.push_back(std::move(child));
      }
    }
    begin = end;
  }
  return tree;
}

// Appends the keys below a folder in byte order: files and folders merged, a folder standing as its name and a slash.
class Collector {
 public:
  Collector(const Tree& tree, std::uint32_t source, std::string prefix, Inputs& inputs)
      : tree_(tree), source_(source), prefix_(std::move(prefix)), inputs_(inputs) {
    std::size_t bytes = 0;
    for (const Folder& folder : tree.folders) {
      for (const FoundFile& file : folder.files) bytes += prefix_.size() + folder.path.size() + file.name.size();
    }
    inputs.text.push_back(std::make_unique<std::string>());
    text_ = inputs.text.back().get();
    text_->reserve(bytes);  // never grows past it: the keys' views stay
  }

  std::uint64_t Collect(std::uint32_t index, std::int32_t label) {
    const Folder& folder = tree_.folders[index];
    std::uint64_t count = folder.files.size();
    std::size_t f = 0;
    for (std::size_t c = 0; c < folder.children.size(); ++c) {
      const std::string child = folder.children[c] + '/';
      for (; f < folder.files.size() && folder.files[f].name < child; ++f) Add(folder, folder.files[f], label);
      count += Collect(folder.child_index[c], label);
    }
    for (; f < folder.files.size(); ++f) Add(folder, folder.files[f], label);
    return count;
  }

 private:
  void Add(const Folder& folder, const FoundFile& file, std::int32_t label) {
    const std::size_t at = text_->size();
    text_->append(prefix_).append(folder.path).append(file.name);
    Input input;
    input.key = std::string_view(text_->data() + at, text_->size() - at);
    input.size = file.size;
    input.label = label;
    input.error = file.error;
    input.source = source_;
    input.path_skip = static_cast<std::uint32_t>(prefix_.size());
    inputs_.bytes += file.size;
    inputs_.list.push_back(input);
  }

  const Tree& tree_;
  std::uint32_t source_;
  std::string prefix_;
  Inputs& inputs_;
  std::string* text_;
};

std::vector<std::string> ClassesOf(const std::vector<Tree>& trees) {
  std::set<std::string> names;
  for (const Tree& tree : trees) {
    const Folder& root = tree.folders[0];
    for (std::size_t c = 0; c < root.children.size(); ++c) {
      if (tree.folders[root.child_index[c]].entered) names.insert(root.children[c]);
    }
  }
  return {names.begin(), names.end()};
}

std::string SourceName(const std::filesystem::path& path) {
  std::filesystem::path clean = std::filesystem::absolute(path).lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  return clean.filename().native();
}

bool ByKey(const Input& a, const Input& b) { return a.key < b.key; }

void CheckUnique(const Inputs& inputs) {
  const auto same = std::adjacent_find(inputs.list.begin(), inputs.list.end(),
                                       [](const Input& a, const Input& b) { return a.key == b.key; });
  if (same == inputs.list.end()) return;
  const auto full = [&](const Input& input) {
    return Escaped((inputs.source_paths[input.source] / inputs.PathOf(input)).native());
  };
  throw Error(ErrorCode::kInvalidArgument,
              "two inputs have the key " + Escaped(same->key) + ": " + full(same[0]) + " and " + full(same[1]));
}

// The last of inputs.roots must not be one of the trees before.
void CheckNewSource(const Inputs& inputs, const std::vector<Tree>& trees) {
  const std::string& path = inputs.source_paths[trees.size()].native();
  struct stat status;
  if (fstat(inputs.roots.back().get(), &status) != 0) ThrowSystemError(errno, "look at folder", path);
  for (const Tree& tree : trees) {
    if (tree.folders[0].device != status.st_dev || tree.folders[0].inode != status.st_ino) continue;
    throw Error(ErrorCode::kInvalidArgument,
                "the source " + Escaped(tree.root.native()) +
                    (tree.root == path ? " is given twice" : " is given a second time as " + Escaped(path)));
  }
}

void CollectAll(const std::vector<Tree>& trees, bool prefixed, const std::map<std::string, std::int32_t>& labels,
                std::vector<std::uint64_t>& class_inputs, Inputs& inputs) {
  inputs.list.clear();
  inputs.text.clear();
  inputs.bytes = 0;
  std::fill(class_inputs.begin(), class_inputs.end(), 0);
  for (std::size_t s = 0; s < trees.size(); ++s) {
    const std::string prefix = prefixed ? SourceName(inputs.source_paths[s]) + "/" : "";
    Collector collector(trees[s], static_cast<std::uint32_t>(s), prefix, inputs);
    const Folder& root = trees[s].folders[0];
    for (std::size_t c = 0; c < root.children.size(); ++c) {
      const std::uint32_t child = root.child_index[c];
      if (!trees[s].folders[child].entered) continue;
      const auto label = labels.find(root.children[c]);
      const std::uint64_t count = collector.Collect(child, label == labels.end() ? -1 : label->second);
      if (label != labels.end()) {
        class_inputs[label->second] += count;
      } else if (count > 0) {
        throw Error(ErrorCode::kInvalidArgument, "class " + Escaped(root.children[c]) + " in " +
                                                     Escaped(trees[s].root.native()) +
                                                     " is not in the list of classes that was given");
      }
    }
  }
  if (trees.size() > 1) std::sort(inputs.list.begin(), inputs.list.end(), ByKey);
}

void WarnOfRootFiles(const std::vector<Tree>& trees, Inputs& inputs) {
  for (const Tree& tree : trees) {
    const auto& files = tree.folders[0].files;
    if (files.empty()) continue;
    inputs.ignored_files += files.size();
    inputs.warnings.push_back(Escaped(tree.root.native()) + ": " + std::to_string(files.size()) +
                              (files.size() == 1 ? " picture lies" : " pictures lie") + " in no class folder and " +
                              (files.size() == 1 ? "is" : "are") + " left out (" + Escaped(files[0].name) +
                              (files.size() > 1 ? ", ...)" : ")"));
  }
}

[[noreturn]] void ThrowNoImage(const Inputs& inputs) {
  std::string message = "no image in " + Escaped(inputs.source_paths[0].native());
  if (inputs.source_paths.size() > 1) message += " and the other sources";
  message += inputs.classes.empty()
                 ? ": there are no class folders; a tree has one folder a class, each with its pictures"
                 : ": none of its " + std::to_string(inputs.classes.size()) + " class folders has a picture";
  throw Error(ErrorCode::kBadInput, message);
}

}  // namespace

std::string Inputs::PathOf(const Input& input) const { return std::string(input.key.substr(input.path_skip)); }

Inputs ScanFolders(const ScanOptions& options) {
  Inputs inputs;
  inputs.source_paths = options.sources;
  std::vector<Tree> trees;
  for (const auto& source : options.sources) {
    inputs.roots.emplace_back(open(source.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!inputs.roots.back()) ThrowSystemError(errno, "open folder", source.native());
    CheckNewSource(inputs, trees);
    trees.push_back(Walk(source, inputs.roots.back().get(), options.stop));
  }
  inputs.classes = options.classes != nullptr ? *options.classes : ClassesOf(trees);
  std::map<std::string, std::int32_t> labels;
  for (std::size_t c = 0; c < inputs.classes.size(); ++c) {
    if (!labels.emplace(inputs.classes[c], static_cast<std::int32_t>(c)).second) {
      throw Error(ErrorCode::kInvalidArgument,
                  "class " + Escaped(inputs.classes[c]) + " stands twice in the list of classes");
    }
  }
  std::vector<std::uint64_t> class_inputs(inputs.classes.size());
  CollectAll(trees, false, labels, class_inputs, inputs);
  if (trees.size() > 1) {
    const auto clash = [](const Input& a, const Input& b) { return a.key == b.key; };
    if (std::adjacent_find(inputs.list.begin(), inputs.list.end(), clash) != inputs.list.end()) {
      CollectAll(trees, true, labels, class_inputs, inputs);
    }
    CheckUnique(inputs);
  }
  for (const Tree& tree : trees) {
    for (const Folder& folder : tree.folders) inputs.ignored_files += folder.ignored;
  }
  WarnOfRootFiles(trees, inputs);
  if (inputs.list.empty()) ThrowNoImage(inputs);
  for (std::size_t c = 0; c < inputs.classes.size(); ++c) {
    if (class_inputs[c] == 0) inputs.warnings.push_back("class " + Escaped(inputs.classes[c]) + " has no images");
  }
  return inputs;
}

}  // namespace shardpack
