// Zip archives.
#include "libshard/pack/archive_file.h"
#include "libshard/pack/source.h"
#include "shardpack/error.h"

namespace shardpack {

std::unique_ptr<Source> OpenZipSource(const std::filesystem::path& path) {
  const ArchiveFile file(path);
  const std::string head = file.Head(4);
  // A file, an archive without members, the first part of one in parts.
  if (head != "PK\x03\x04" && head != "PK\x05\x06" && head != "PK\x07\x08") {
    throw Error(ErrorCode::kBadInput, Location{path.native(), {}, {}}, "is not a zip archive");
  }
  throw Error(ErrorCode::kUnsupported, Location{path.native(), {}, {}}, "this build does not read zip archives");
}

}  // namespace shardpack
