// The members of a tar, one after the other, through libarchive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libshard/pack/forward_bytes.h"

struct archive;
struct archive_entry;

namespace shardpack {

// Knows ustar, pax and GNU tars. A tar that ends without its end marker, in the middle of a member, or with bytes that
// are no header is refused: what it held once cannot be known. Not thread-safe.
//
// Throws Error with kBadInput (naming the archive) and what the bytes below throw.
class TarReader {
 public:
  // `name`: the archive in messages. `bytes` must outlive the reader.
  TarReader(ForwardBytes& bytes, std::string name);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  // To the next member that is a regular file; false behind the last.
  bool Next();

  // Of the member. The name is byte for byte as it stands in the tar.
  std::string_view path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }
  // Where its content begins, from the start of the (decompressed) tar.
  std::uint64_t data_offset() const noexcept { return data_offset_; }
  // Links, devices and the like so far: neither files nor folders.
  std::uint64_t others() const noexcept { return others_; }

  // Reads the next bytes of the member's content: exactly `size`. Precondition: they are there by size().
  void Read(std::byte* to, std::uint64_t size);
  // What the member holds as bytes from front to back, for a tar in a tar. Ends with the next Next().
  ForwardBytes& Content();

  [[noreturn]] void Fail(const std::string& reason) const;

 private:
  class Callbacks;
  class MemberBytes;

  void CheckHeader(int result);

  std::string name_;
  std::unique_ptr<Callbacks> callbacks_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  archive_entry* entry_ = nullptr;  // owned by archive_
  std::unique_ptr<MemberBytes> content_;
  std::string path_;
  std::uint64_t size_ = 0, data_offset_ = 0, others_ = 0;
  std::uint64_t end_of_last_ = 0;
};

}  // namespace shardpack
