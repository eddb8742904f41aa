// Which kind of source a path is.
#pragma once

#include <filesystem>

#include "libshard/pack/source.h"

namespace shardpack {

// What one path of a request is opened as.
enum class SourceForm { kFolder, kCsv, kJsonl, kTar, kZip, kTfrecord, kDataset, kArrays };

// As `options.from` asks, else as it is named and begins. Throws Error with kNotFound, kIo, kInvalidArgument (a folder
// where a file is asked for, a file of no known kind, ...).
SourceForm FormOf(const std::filesystem::path& path, const PackOptions& options);

}  // namespace shardpack
