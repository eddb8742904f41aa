// TFRecord files of tf.train.Example.
#include "libshard/pack/archive_file.h"
#include "libshard/pack/forward_bytes.h"
#include "libshard/pack/source.h"
#include "shardpack/error.h"

namespace shardpack {

std::unique_ptr<Source> OpenTfrecordSource(const std::filesystem::path& path, const PackOptions&) {
  const ArchiveFile file(path);
  constexpr std::size_t kLeastBytes = 16;  // length, two checksums
  if (WrappingOf(file.Head(kLeastBytes)) == Wrapping::kPlain && file.Size() < kLeastBytes) {
    throw Error(ErrorCode::kBadInput, Location{path.native(), {}, {}}, "is not a TFRecord file, or is cut off");
  }
  throw Error(ErrorCode::kUnsupported, Location{path.native(), {}, {}}, "this build does not read TFRecord files");
}

}  // namespace shardpack
