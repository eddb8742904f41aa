// A tar archive written front to back, equal bytes for equal members.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "libshard/pack/file_handle.h"
#include "shardpack/record.h"

namespace shardpack {

// POSIX ustar; a name that does not fit its fields gets a pax header in front. Mode 0644, owner 0, time 0. Throws Error
// with kIo.
class TarWriter {
 public:
  // Creates `path`, which must not exist; an unfinished archive is removed.
  explicit TarWriter(const std::filesystem::path& path);
  ~TarWriter();
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  void Add(std::string_view name, Bytes content);
  void Finish();

 private:
  void PutMember(std::string_view prefix, std::string_view name, char type, Bytes content);
  void Put(Bytes bytes);
  void Flush();

  std::filesystem::path path_;
  FileHandle file_;
  std::string buffer_;
  bool finished_ = false;
};

}  // namespace shardpack
