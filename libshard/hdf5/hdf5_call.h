// libhdf5 called safely: under a lock, without its prints, with handles that are closed.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

#include "shardpack/error.h"

namespace shardpack::hdf5 {

// While one lives its thread alone is in libhdf5, and libhdf5 prints no errors.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

// What libhdf5 says of the last call that failed, in one line: the innermost of its messages.
std::string LastMessage();

// Owns a handle. Close is the function that closes it. To be destroyed within a session, or empty.
template <herr_t (*Close)(hid_t)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) noexcept : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() { Reset(); }

  void Reset() noexcept {
    if (id_ >= 0) Close(std::exchange(id_, -1));
  }
  explicit operator bool() const noexcept { return id_ >= 0; }
  hid_t get() const noexcept { return id_; }

 private:
  hid_t id_ = -1;
};

using File = Handle<H5Fclose>;
using Array = Handle<H5Dclose>;
using Space = Handle<H5Sclose>;
using Type = Handle<H5Tclose>;
using Properties = Handle<H5Pclose>;

// Throws Error with kCorruption, naming the file, what was being done and libhdf5's words.
[[noreturn]] void Throw(const std::filesystem::path& path, const std::string& doing);

template <typename Id>
Id Checked(Id result, const std::filesystem::path& path, const char* doing) {
  if (result < 0) Throw(path, doing);
  return result;
}

}  // namespace shardpack::hdf5
