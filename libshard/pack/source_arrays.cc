// HDF5 files with arrays of images and labels.
#include "libshard/pack/source.h"
#include "shardpack/error.h"

namespace shardpack {

std::unique_ptr<Source> OpenArraysSource(const std::filesystem::path& path) {
  throw Error(ErrorCode::kUnsupported, Location{path.native(), {}, {}},
              "this build has no HDF5: it reads no HDF5 files (SHARDPACK_WITH_HDF5)");
}

}  // namespace shardpack
