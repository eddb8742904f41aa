#include "libshard/pack/tar_writer.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kNameBytes = 100, kPrefixBytes = 155;
constexpr std::size_t kBufferBytes = 1 << 20;

// Where a name is cut into prefix and name, which are joined by a slash; npos where it cannot be.
std::size_t SplitName(std::string_view name) {
  const std::size_t slash = name.find('/', name.size() - kNameBytes - 1);
  return slash == std::string_view::npos || slash == 0 || slash > kPrefixBytes || slash + 1 == name.size()
             ? std::string_view::npos
             : slash;
}

// "LENGTH KEYWORD=VALUE\n", the length counting its own digits.
std::string PaxRecord(std::string_view keyword, std::string_view value) {
  const std::size_t rest = keyword.size() + value.size() + 3;
  std::size_t length = rest + std::to_string(rest).size();
  length = rest + std::to_string(length).size();
  std::string record = std::to_string(length) + " ";
  return record.append(keyword).append("=").append(value).append("\n");
}

void PutOctal(char* field, std::size_t width, std::uint64_t value) {
  field[width - 1] = '\0';
  for (std::size_t at = width - 1; at > 0; value /= 8) field[--at] = static_cast<char>('0' + value % 8);
}

}  // namespace

TarWriter::TarWriter(const std::filesystem::path& path)
    : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (!file_) ThrowSystemError(errno, "create", path.native());
}

TarWriter::~TarWriter() {
  if (!finished_) unlink(path_.c_str());
}

void TarWriter::Add(std::string_view name, Bytes content) {
  if (name.size() <= kNameBytes) {
    PutMember("", name, '0', content);
  } else if (const std::size_t slash = SplitName(name); slash != std::string_view::npos) {
    PutMember(name.substr(0, slash), name.substr(slash + 1), '0', content);
  } else {
    const std::string records = (IsUtf8(name) ? "" : PaxRecord("hdrcharset", "BINARY")) + PaxRecord("path", name);
    PutMember("", "pax_header", 'x', AsBytes(records));
    PutMember("", name.substr(0, kNameBytes), '0', content);
  }
}

void TarWriter::PutMember(std::string_view prefix, std::string_view name, char type, Bytes content) {
  char header[kBlock] = {};
  std::memcpy(header, name.data(), name.size());
  PutOctal(header + 100, 8, 0644);
  PutOctal(header + 108, 8, 0);                // owner
  PutOctal(header + 116, 8, 0);                // group
  PutOctal(header + 124, 12, content.size());  // a record has less than 4 GiB, the field holds 8
  PutOctal(header + 136, 12, 0);               // time
  std::memset(header + 148, ' ', 8);           // the checksum counts itself as blanks
  header[156] = type;
  std::memcpy(header + 257,
              "ustar\0"
              "00",
              8);
  std::memcpy(header + 345, prefix.data(), prefix.size());
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  PutOctal(header + 148, 7, sum);
  Put(std::as_bytes(std::span(header)));
  Put(content);
  static constexpr std::byte kZeros[kBlock] = {};
  Put(Bytes(kZeros).first((kBlock - content.size() % kBlock) % kBlock));
}

void TarWriter::Finish() {
  static constexpr std::byte kEnd[2 * kBlock] = {};
  Put(kEnd);
  Flush();
  if (fsync(file_.get()) != 0 && errno != EINVAL && errno != ENOTSUP) ThrowSystemError(errno, "sync", path_.native());
  finished_ = true;
}

void TarWriter::Put(Bytes bytes) {
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (buffer_.size() >= kBufferBytes) Flush();
}

void TarWriter::Flush() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t n = write(file_.get(), buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowSystemError(errno, "write", path_.native());
    done += static_cast<std::size_t>(n);
  }
  buffer_.clear();
}

}  // namespace shardpack
