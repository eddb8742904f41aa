// Single files that a source is made of: looked at while scanning, read while packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libshard/pack/source.h"
#include "shardpack/error.h"

namespace shardpack {

// What a scan can tell of a file.
struct FileLook {
  std::uint64_t size = 0;
  std::string bad;  // why it cannot be packed; else empty
  ErrorCode bad_code = ErrorCode::kBadInput;
};

// `path` is relative to the open folder, or absolute; links are followed. `missing` is the reason where there is
// nothing. Throws OutOfResources.
FileLook LookAtFile(int folder, const char* path, std::string_view missing);

// Whether the file looks as it did when the plan was made.
bool LooksAsPlanned(int folder, const char* path, std::string_view missing, const PlannedInput& input);

// Fills to[0, size). Throws what Source::Read() promises; a file that grew or shrank is kBadInput.
void ReadWholeFile(int folder, const char* path, std::uint64_t size, std::byte* to);

}  // namespace shardpack
