#include "libshard/pack/zip_handles.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <utility>

#include "libshard/pack/source.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::size_t kMostIdle = 32;
// A member costs libzip some 250 bytes a handle.
constexpr std::uint64_t kMostMembersOpen = 4'000'000;
constexpr std::size_t kMostLent = 256;

// Those that nobody uses, of all archives.
class IdleZips {
 public:
  zip_t* Take(std::uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(zips_.begin(), zips_.end(), [&](const auto& zip) { return zip.first == id; });
    if (found == zips_.end()) return nullptr;
    zip_t* zip = found->second;
    zips_.erase(found);
    return zip;
  }

  void Keep(std::uint64_t id, zip_t* zip) {
    zip_t* oldest = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      zips_.emplace_front(id, zip);
      if (zips_.size() > kMostIdle) {
        oldest = zips_.back().second;
        zips_.pop_back();
      }
    }
    if (oldest != nullptr) zip_discard(oldest);
  }

 private:
  std::mutex mutex_;
  std::list<std::pair<std::uint64_t, zip_t*>> zips_;  // most recently used first
};

IdleZips& Idle() {
  static IdleZips* const idle = new IdleZips;  // never destroyed, as sources may be by destructors of other statics
  return *idle;
}

std::uint64_t NextId() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

[[noreturn]] void ThrowNotOpened(int code, int system_error, const std::filesystem::path& path) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string words = zip_error_strerror(&error);
  zip_error_fini(&error);
  switch (code) {
    case ZIP_ER_MEMORY:
      throw std::bad_alloc();
    case ZIP_ER_NOENT:
      // Said of a missing file, and of a directory without the field that it points to.
      if (access(path.c_str(), F_OK) != 0) ThrowSystemError(ENOENT, "open", path.native());
      throw Error(ErrorCode::kBadInput, Location{path.native(), {}, {}},
                  "is damaged: zip: its directory contradicts itself");
    case ZIP_ER_OPEN:
    case ZIP_ER_READ:
    case ZIP_ER_SEEK:
      if (system_error == EMFILE || system_error == ENFILE || system_error == ENOMEM) {
        throw OutOfResources{system_error, "open"};
      }
      ThrowSystemError(system_error != 0 ? system_error : EIO, "read", path.native());
    case ZIP_ER_NOZIP:
    case ZIP_ER_EOF:
      throw Error(ErrorCode::kBadInput, Location{path.native(), {}, {}},
                  "is cut off or no zip archive: the directory at its end is missing");
    default:
      throw Error(ErrorCode::kBadInput, Location{path.native(), {}, {}}, "is damaged: zip: " + Escaped(words));
  }
}

}  // namespace

ZipHandles::ZipHandles(std::filesystem::path path) : path_(std::move(path)), id_(NextId()) {}

ZipHandles::~ZipHandles() {
  while (zip_t* zip = Idle().Take(id_)) zip_discard(zip);
}

ZipHandles::Loan ZipHandles::Borrow() {
  std::unique_lock<std::mutex> lock(mutex_);
  returned_.wait(lock, [&] { return lent_ < most_; });
  ++lent_;
  lock.unlock();
  try {
    zip_t* zip = Idle().Take(id_);
    return {*this, zip != nullptr ? zip : OpenAnother()};
  } catch (...) {
    lock.lock();
    --lent_;
    returned_.notify_one();
    throw;
  }
}

zip_t* ZipHandles::OpenAnother() {
  int code = 0;
  errno = 0;
  zip_t* zip = zip_open(path_.c_str(), ZIP_RDONLY, &code);
  if (zip == nullptr) ThrowNotOpened(code, errno, path_);
  const auto members = static_cast<std::uint64_t>(std::max<zip_int64_t>(zip_get_num_entries(zip, 0), 1));
  const std::lock_guard<std::mutex> lock(mutex_);
  most_ = std::clamp<std::uint64_t>(kMostMembersOpen / members, 1, kMostLent);
  returned_.notify_all();
  return zip;
}

void ZipHandles::GiveBack(zip_t* zip) {
  Idle().Keep(id_, zip);
  const std::lock_guard<std::mutex> lock(mutex_);
  --lent_;
  returned_.notify_one();
}

}  // namespace shardpack
