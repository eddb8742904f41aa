#include "libshard/pack/forward_bytes.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "shardpack/error.h"

namespace shardpack {
namespace {

// Small enough that passing over a picture costs less than reading it, large enough that many small members come with
// one call.
constexpr std::size_t kPieceBytes = 32 << 10;
constexpr std::size_t kCompressedPieceBytes = 256 << 10;
constexpr unsigned kLargestZstdWindowLog = 27;  // 128 MiB: what `zstd -d` takes without being asked

std::uint8_t ByteAt(std::string_view text, std::size_t i) { return static_cast<std::uint8_t>(text[i]); }

class PlainBytes : public ForwardBytes {
 public:
  PlainBytes(const ArchiveFile& file, std::size_t piece, std::uint64_t begin, std::uint64_t end)
      : path_(file.path()), fd_(file.Open()), buffer_(piece), at_(begin), size_(end) {}

  Bytes Next(std::size_t most) override {
    const std::uint64_t count = std::min<std::uint64_t>({most, buffer_.size(), size_ - at_});
    int error = 0;
    if (!ReadAt(fd_->get(), at_, buffer_.data(), count, error)) {
      if (error != 0) ThrowSystemError(error, "read", path_.native());
      throw Error(ErrorCode::kBadInput, Location{path_.native(), {}, {}}, "became shorter while it was being read");
    }
    at_ += count;
    return {buffer_.data(), static_cast<std::size_t>(count)};
  }

  std::uint64_t Skip(std::uint64_t count) override {
    count = std::min(count, size_ - at_);
    at_ += count;
    return count;
  }

 private:
  std::filesystem::path path_;
  SharedFd fd_;
  std::vector<std::byte> buffer_;
  std::uint64_t at_, size_;
};

// What both decompressors share: compressed pieces in, one buffer out.
class InflatedBytes : public ForwardBytes {
 public:
  explicit InflatedBytes(const ArchiveFile& file)
      : path_(file.path().native()),
        compressed_(file, kCompressedPieceBytes, 0, file.Size()),
        out_(kCompressedPieceBytes) {}

  Bytes Next(std::size_t most) override {
    const std::size_t room = std::min(most, out_.size());
    for (;;) {
      if (input_.empty()) {
        input_ = compressed_.Next(kCompressedPieceBytes);
        if (input_.empty() && between_) return {};
      }
      const bool at_end = input_.empty();  // the decompressor may still hold bytes back that did not fit last time
      const std::size_t made = Inflate(out_.data(), room);
      if (made > 0) return {out_.data(), made};
      if (at_end && !between_) Fail("is cut off: the compressed data end too early");
    }
  }

  std::uint64_t Skip(std::uint64_t) override { return 0; }

 protected:
  // Takes from input_ and gives the number of bytes made; sets between_.
  virtual std::size_t Inflate(std::byte* to, std::size_t room) = 0;

  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kBadInput, Location{path_, {}, {}}, reason);
  }

  Bytes input_;
  bool between_ = false;  // between two members or frames: where the file may end

 private:
  std::string path_;
  PlainBytes compressed_;
  std::vector<std::byte> out_;
};

// Also checks the CRC and length that stand behind each gzip member. Members may follow each other, as pigz, bgzip and
// `cat a.gz b.gz` make them.
class ZlibBytes : public InflatedBytes {
 public:
  ZlibBytes(const ArchiveFile& file, bool gzip) : InflatedBytes(file) {
    const int result = inflateInit2(&stream_, gzip ? MAX_WBITS + 16 : MAX_WBITS);
    if (result != Z_OK) throw std::bad_alloc();
  }
  ~ZlibBytes() override { inflateEnd(&stream_); }

 protected:
  std::size_t Inflate(std::byte* to, std::size_t room) override {
    if (between_) {
      if (padding_ || input_[0] == std::byte{0}) return PassOverPadding();
      inflateReset(&stream_);
      between_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input_.data()));
    stream_.avail_in = static_cast<uInt>(input_.size());
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input_ = input_.last(stream_.avail_in);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) {
      between_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      Fail(std::string("is damaged: ") + (stream_.msg != nullptr ? stream_.msg : "the compressed data make no sense"));
    }
    return room - stream_.avail_out;
  }

 private:
  // Tapes and some object stores fill a gzip file up with zero bytes.
  std::size_t PassOverPadding() {
    padding_ = true;
    for (const std::byte b : input_) {
      if (b != std::byte{0}) Fail("is damaged: there is something else behind the compressed data");
    }
    input_ = {};
    return 0;
  }

  z_stream stream_{};
  bool padding_ = false;
};

class ZstdBytes : public InflatedBytes {
 public:
  explicit ZstdBytes(const ArchiveFile& file) : InflatedBytes(file), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kLargestZstdWindowLog);
  }

 protected:
  std::size_t Inflate(std::byte* to, std::size_t room) override {
    ZSTD_inBuffer in{input_.data(), input_.size(), 0};
    ZSTD_outBuffer out{to, room, 0};
    const std::size_t result = ZSTD_decompressStream(stream_.get(), &out, &in);
    if (ZSTD_isError(result)) Fail(std::string("is damaged: zstd: ") + ZSTD_getErrorName(result));
    input_ = input_.subspan(in.pos);
    between_ = result == 0;
    return out.pos;
  }

 private:
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
};

}  // namespace

Wrapping WrappingOf(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return Wrapping::kGzip;
  if (head.starts_with("\x28\xb5\x2f\xfd")) return Wrapping::kZstd;
  // A skippable frame, as pzstd writes one first.
  if (head.size() >= 4 && (ByteAt(head, 0) & 0xf0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18") {
    return Wrapping::kZstd;
  }
  if (head.size() >= 2 && (ByteAt(head, 0) & 0x8f) == 8 && (ByteAt(head, 0) * 256 + ByteAt(head, 1)) % 31 == 0 &&
      (ByteAt(head, 1) & 0x20) == 0) {
    return Wrapping::kZlib;
  }
  return Wrapping::kPlain;
}

std::unique_ptr<ForwardBytes> ForwardBytes::Open(const ArchiveFile& file, Wrapping wrapping) {
  switch (wrapping) {
    case Wrapping::kGzip:
    case Wrapping::kZlib:
      return std::make_unique<ZlibBytes>(file, wrapping == Wrapping::kGzip);
    case Wrapping::kZstd:
      return std::make_unique<ZstdBytes>(file);
    case Wrapping::kPlain:
      break;
  }
  return OpenRange(file, 0, file.Size());
}

std::unique_ptr<ForwardBytes> ForwardBytes::OpenRange(const ArchiveFile& file, std::uint64_t offset,
                                                      std::uint64_t size) {
  return std::make_unique<PlainBytes>(file, kPieceBytes, offset, offset + size);
}

std::uint64_t ForwardBytes::Read(std::byte* to, std::uint64_t size) {
  std::uint64_t done = 0;
  while (done < size) {
    const Bytes piece = Next(std::min<std::uint64_t>(size - done, std::size_t{1} << 30));
    if (piece.empty()) break;
    std::memcpy(to + done, piece.data(), piece.size());
    done += piece.size();
  }
  return done;
}

std::uint64_t ForwardBytes::PassOver(std::uint64_t count) {
  std::uint64_t done = 0;
  while (done < count) {
    std::uint64_t passed = Skip(count - done);
    if (passed == 0) passed = Next(std::min<std::uint64_t>(count - done, std::size_t{1} << 30)).size();
    if (passed == 0) break;
    done += passed;
  }
  return done;
}

}  // namespace shardpack
