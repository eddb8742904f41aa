#include "libshard/hdf5/hdf5_call.h"

namespace shardpack::hdf5 {
namespace {

// Builds of libhdf5 that are not thread-safe need it, and the others have one of their own.
std::mutex& TheLock() {
  static std::mutex* const lock = new std::mutex;  // never destroyed: files may be closed by other statics' destructors
  return *lock;
}

herr_t TakeFirst(unsigned n, const H5E_error2_t* error, void* message) {
  if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(message) = error->desc;
  return 0;
}

}  // namespace

Session::Session() : lock_(TheLock()) {
  H5open();
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Session::~Session() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

std::string LastMessage() {
  std::string message;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, TakeFirst, &message);
  return message.empty() ? "libhdf5 gives no reason" : Escaped(message);
}

void Throw(const std::filesystem::path& path, const std::string& doing) {
  throw Error(ErrorCode::kCorruption, Location{path.native(), {}, {}}, "cannot " + doing + ": " + LastMessage());
}

}  // namespace shardpack::hdf5
