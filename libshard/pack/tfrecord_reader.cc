#include "libshard/pack/tfrecord_reader.h"

#include <algorithm>

#include "libshard/pack/crc32c.h"
#include "libshard/store/coding.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kHeadBytes = 12, kTailBytes = 4;
constexpr std::uint64_t kLargestRecord = 0xffffffff;
constexpr std::uint64_t kGrowth = 16 << 20;  // memory is taken as bytes come, not as a length says

}  // namespace

TfRecordReader::TfRecordReader(ForwardBytes& bytes, std::string path, std::uint64_t file_size)
    : bytes_(bytes), path_(std::move(path)), file_size_(file_size) {}

bool TfRecordReader::Next() {
  number_ = next_number_++;
  record_offset_ = at_;
  data_ = {};
  damage_.clear();
  std::byte head[kHeadBytes];
  const std::uint64_t got = bytes_.Read(head, kHeadBytes);
  if (got == 0) return false;
  if (got < kHeadBytes) Fail("is cut off: the file ends within the record's length");
  at_ += kHeadBytes;
  data_offset_ = at_;
  if (Load<std::uint32_t>(head + 8) != MaskedCrc32c({head, 8})) {
    Fail(number_ == 0 ? "is not a TFRecord file: the length of its first record contradicts its checksum"
                      : "the length of the record contradicts its checksum: nothing behind it can be found");
  }
  const auto length = Load<std::uint64_t>(head);
  const std::uint64_t left = file_size_ - std::min(file_size_, at_);
  if (left < kTailBytes || length > left - kTailBytes) Fail("is cut off: the file ends within the record");
  if (length > kLargestRecord) {
    PassOverData(length);
  } else {
    ReadData(length);
  }
  return true;
}

void TfRecordReader::ReadData(std::uint64_t length) {
  const std::uint64_t wanted = length + kTailBytes;
  std::uint64_t done = 0;
  while (done < wanted) {
    const std::uint64_t step = std::min(wanted - done, std::max<std::uint64_t>(kGrowth, done));
    if (buffer_.size() < done + step) buffer_.resize(done + step);
    const std::uint64_t got = bytes_.Read(reinterpret_cast<std::byte*>(buffer_.data()) + done, step);
    done += got;
    if (got < step) Fail("is cut off: the file ends within the record");
  }
  at_ += wanted;
  const std::string_view data(buffer_.data(), length);
  if (Load<std::uint32_t>(buffer_.data() + length) != MaskedCrc32c(AsBytes(data))) {
    damage_ = "the bytes of the record contradict their checksum";
  } else {
    data_ = data;
  }
}

void TfRecordReader::PassOverData(std::uint64_t length) {
  const bool is_there = bytes_.PassOver(length) == length && bytes_.PassOver(kTailBytes) == kTailBytes;
  if (!is_there) Fail("is cut off: the file ends within the record");
  at_ += length + kTailBytes;
  damage_ = "a record of 4 GiB or more";
}

void TfRecordReader::Fail(const std::string& reason) const {
  throw Error(ErrorCode::kBadInput, Location{path_, number_, record_offset_}, reason);
}

}  // namespace shardpack
