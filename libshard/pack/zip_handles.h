// Open zip archives, for many threads.
#pragma once

#include <zip.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

namespace shardpack {

// A zip_t serves one thread at a time, and each holds the archive's whole directory. So they are lent, few of one
// archive at once where it has very many members; those that are not in use stay open, few of all archives together.
// Any thread.
class ZipHandles {
 public:
  explicit ZipHandles(std::filesystem::path path);
  ~ZipHandles();
  ZipHandles(const ZipHandles&) = delete;
  ZipHandles& operator=(const ZipHandles&) = delete;

  class Loan {
   public:
    Loan(ZipHandles& of, zip_t* zip) : of_(of), zip_(zip) {}
    ~Loan() { of_.GiveBack(zip_); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    zip_t* get() const noexcept { return zip_; }

   private:
    ZipHandles& of_;
    zip_t* zip_;
  };
  // Waits while too many are lent. Throws Error with kNotFound, kIo or kBadInput (with the archive's path), and
  // OutOfResources.
  Loan Borrow();

 private:
  zip_t* OpenAnother();
  void GiveBack(zip_t* zip);

  const std::filesystem::path path_;
  const std::uint64_t id_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::size_t lent_ = 0, most_ = 1;  // one until it is known how many members there are
};

}  // namespace shardpack
