// The records of a TFRecord file, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/pack/forward_bytes.h"

namespace shardpack {

// A record is a u64 length, its masked CRC-32C, the bytes, their masked CRC-32C, all little endian. Not thread-safe.
class TfRecordReader {
 public:
  // `path`: the file in messages. `bytes` must outlive the reader. `file_size`: of a file that is not compressed, so
  // that no length is believed that it cannot hold; else the largest number.
  TfRecordReader(ForwardBytes& bytes, std::string path, std::uint64_t file_size);

  // To the next record; false behind the last. Throws Error with kBadInput that names file, record and offset where the
  // file ends within a record or a length is damaged: nothing behind it can be found.
  bool Next();

  std::uint64_t number() const noexcept { return number_; }  // from 0
  std::uint64_t record_offset() const noexcept { return record_offset_; }
  std::uint64_t data_offset() const noexcept {
    return data_offset_;
  }  // of its bytes, in the file or what it unpacks to
  // Empty where damage() is not.
  std::string_view data() const noexcept { return data_; }
  // Why this record is of no use while those behind it are: its bytes contradict their checksum, or are 4 GiB or more.
  const std::string& damage() const noexcept { return damage_; }

  [[noreturn]] void Fail(const std::string& reason) const;

 private:
  void ReadData(std::uint64_t length);
  void PassOverData(std::uint64_t length);

  ForwardBytes& bytes_;
  std::string path_;
  std::uint64_t file_size_;
  std::uint64_t next_number_ = 0, number_ = 0, at_ = 0, record_offset_ = 0, data_offset_ = 0;
  std::string buffer_;
  std::string_view data_;
  std::string damage_;
};

}  // namespace shardpack
