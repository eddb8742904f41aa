// Class folders as a list of inputs.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/store/unique_fd.h"

namespace shardpack {

// A file that is to be packed.
struct Input {
  std::string_view key;  // points into Inputs::text
  std::uint64_t size = 0;
  std::int32_t label = 0;
  std::int32_t error = 0;       // errno of looking at it: a link that leads nowhere, a file without permission
  std::uint32_t source = 0;     // index into Inputs::roots
  std::uint32_t path_skip = 0;  // bytes in front of the key that are the source's name and not part of the path
};

struct Inputs {
  std::vector<std::filesystem::path> source_paths;  // as given
  std::vector<UniqueFd> roots;                      // open folders, one a source
  std::vector<Input> list;                          // in byte order of keys
  std::vector<std::string> classes;                 // by label
  std::uint64_t bytes = 0;
  std::uint64_t ignored_files = 0;  // hidden, or no candidates
  std::vector<std::string> warnings;
  std::vector<std::unique_ptr<std::string>> text;  // what the keys point into

  std::string PathOf(const Input& input) const;  // relative to its root
};

struct ScanOptions {
  std::vector<std::filesystem::path> sources;
  const std::vector<std::string>* classes = nullptr;  // pinned; null: byte order of the folders' names
  const std::atomic<bool>* stop = nullptr;
};

// Whether the name's extension is that of a picture, in any letter case.
bool IsCandidateName(std::string_view name);

// Walks the trees: each folder directly under a root is a class, pictures in deeper folders belong to their top folder.
// Names that begin with a dot are passed over, as is what is neither file nor folder. Links are followed; a folder
// already on the way down is not entered again. Runs on the threads of the calling task arena; the result does not
// depend on their number nor on the disk's order. Throws Error: kNotFound, kIo (a folder that cannot be read),
// kInvalidArgument (a pinned class is missing), kBadInput (no image at all); Interrupted.
Inputs ScanFolders(const ScanOptions& options);

}  // namespace shardpack
