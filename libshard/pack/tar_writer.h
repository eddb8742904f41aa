// Writes a tar archive, through libarchive.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "libshard/store/unique_fd.h"
#include "shardpack/record.h"

struct archive;
struct archive_entry;

namespace shardpack {

// POSIX (pax) format: plain ustar members, an extended header only for a name that ustar cannot hold or that is not
// ASCII. Owner, time and permissions are the same for every member, so equal records give equal archives.
class TarWriter {
 public:
  // Throws Error: kInvalidArgument where the file exists, kIo where the system refuses.
  explicit TarWriter(const std::filesystem::path& path);
  // Removes the file where Finish() was not called.
  ~TarWriter();
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  // Names are kept byte for byte.
  void Add(std::string_view name, Bytes content);
  void Finish();

 private:
  // Throws what libarchive left as the reason, where `result` says that it failed.
  void Check(long long result) const;

  std::filesystem::path path_;
  UniqueFd file_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry_;
  bool finished_ = false;
};

}  // namespace shardpack
