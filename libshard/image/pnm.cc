#include "libshard/image/pnm.h"

#include <algorithm>
#include <bit>

namespace shardpack::image {
namespace {

constexpr std::uint32_t kMaxSample = 65535;

bool IsSpace(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  std::uint8_t Next() {
    if (at_ >= bytes_.size()) ThrowTruncated("the PNM ends before its last pixel");
    return U8(bytes_, at_++);
  }

  // A number after white space and comments.
  std::uint32_t Number() {
    std::uint8_t c = AfterSpace();
    if (c < '0' || c > '9') ThrowBad("corrupt PNM: no number where one must be");
    std::uint64_t value = 0;
    for (;;) {
      value = value * 10 + (c - '0');
      if (value > UINT32_MAX) ThrowBad("corrupt PNM: a number out of range");
      if (at_ >= bytes_.size()) break;
      c = U8(bytes_, at_);
      if (c < '0' || c > '9') break;
      ++at_;
    }
    return static_cast<std::uint32_t>(value);
  }

  // P1's pixels need no space between them.
  std::uint32_t Bit() {
    std::uint8_t c = AfterSpace();
    if (c != '0' && c != '1') ThrowBad("corrupt PNM: neither 0 nor 1");
    return c - '0';
  }

  Bytes Rest() const { return bytes_.subspan(at_); }

 private:
  std::uint8_t AfterSpace() {
    std::uint8_t c = Next();
    while (IsSpace(c) || c == '#') {
      if (c == '#') {
        while (c != '\n' && c != '\r') c = Next();
      }
      c = Next();
    }
    return c;
  }

  Bytes bytes_;
  std::size_t at_ = 0;
};

struct Header {
  int kind;  // 1 to 6
  std::uint32_t width, height, maximum;

  bool Bitmap() const { return kind == 1 || kind == 4; }
  bool Colour() const { return kind == 3 || kind == 6; }
  bool Text() const { return kind <= 3; }
};

Header ReadHeader(Reader& reader) {
  reader.Next();
  Header header;
  header.kind = reader.Next() - '0';
  header.width = reader.Number();
  header.height = reader.Number();
  header.maximum = header.Bitmap() ? 1 : reader.Number();
  if (header.maximum == 0 || header.maximum > kMaxSample) {
    ThrowBad("corrupt PNM: a largest value of " + std::to_string(header.maximum));
  }
  if (!header.Text() && !IsSpace(reader.Next())) ThrowBad("corrupt PNM: no space after its header");
  return header;
}

// Bytes a row of a binary file, or the fewest that the row of a text file can have.
std::uint64_t RowBytes(const Header& header) {
  std::uint64_t width = header.width;
  if (header.kind == 4) return (width + 7) / 8;
  if (header.kind == 1) return width;
  std::uint64_t samples = width * (header.Colour() ? 3 : 1);
  return header.Text() ? samples : samples * (header.maximum > 255 ? 2 : 1);
}

class SampleReader {
 public:
  SampleReader(Reader& reader, const Header& header) : reader_(reader), header_(header) {}

  std::uint8_t Next() {
    if (header_.kind == 1) return reader_.Bit() ? 0 : 255;
    if (header_.kind == 4) return NextPackedBit() ? 0 : 255;
    return Scaled(header_.Text() ? reader_.Number() : NextBinary());
  }
  // Without scaling, where there are more than 8 bits.
  std::uint32_t NextUnscaled() { return std::min(header_.Text() ? reader_.Number() : NextBinary(), header_.maximum); }
  void EndRow() { bits_left_ = 0; }

 private:
  std::uint32_t NextBinary() {
    std::uint32_t value = reader_.Next();
    return header_.maximum > 255 ? value << 8 | reader_.Next() : value;
  }
  bool NextPackedBit() {
    if (bits_left_ == 0) {
      bits_ = reader_.Next();
      bits_left_ = 8;
    }
    return bits_ >> --bits_left_ & 1;
  }
  std::uint8_t Scaled(std::uint32_t value) const {
    if (value >= header_.maximum) return 255;  // larger ones are clipped, as netpbm's and Pillow's readers do
    return static_cast<std::uint8_t>((value * 255 + header_.maximum / 2) / header_.maximum);
  }

  Reader& reader_;
  const Header& header_;
  std::uint8_t bits_ = 0;
  int bits_left_ = 0;
};

}  // namespace

StoredInfo ProbePnm(Bytes bytes) {
  Reader reader(bytes);
  Header header = ReadHeader(reader);
  StoredInfo info;
  info.encoding = Encoding::kPnm;
  info.width = header.width;
  info.height = header.height;
  info.channels = header.Colour() ? 3 : 1;
  info.bit_depth = static_cast<std::uint8_t>(std::bit_width(header.maximum));
  std::uint64_t row_bytes = RowBytes(header);
  if (row_bytes != 0 && header.height > reader.Rest().size() / row_bytes) {
    ThrowTruncated("the PNM ends before its last pixel");
  }
  return info;
}

void DecodePnm(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels) {
  Reader reader(bytes);
  Header header = ReadHeader(reader);
  SampleReader samples(reader, header);
  for (std::uint32_t y = 0; y < info.height; ++y, samples.EndRow()) {
    for (std::uint32_t x = 0; x < info.width; ++x, pixels += 3) {
      pixels[0] = samples.Next();
      pixels[1] = header.Colour() ? samples.Next() : pixels[0];
      pixels[2] = header.Colour() ? samples.Next() : pixels[0];
    }
  }
}

void DecodePnm(Bytes bytes, const StoredInfo& info, Samples& out) {
  Reader reader(bytes);
  const Header header = ReadHeader(reader);
  const bool deep = header.maximum > 255;
  out.channels = header.Colour() ? 3 : 1;
  out.bit_depth = deep ? 16 : 8;
  out.maximum = deep ? static_cast<std::uint16_t>(header.maximum) : 0;
  const std::size_t row_samples = std::size_t{info.width} * out.channels;
  out.data.resize(row_samples * (deep ? 2 : 1) * info.height);
  SampleReader samples(reader, header);
  std::byte* to = out.data.data();
  for (std::uint32_t y = 0; y < info.height; ++y, samples.EndRow()) {
    for (std::size_t i = 0; i < row_samples; ++i) {
      const std::uint32_t value = deep ? samples.NextUnscaled() : samples.Next();
      *to++ = static_cast<std::byte>(value);
      if (deep) *to++ = static_cast<std::byte>(value >> 8);
    }
  }
}

}  // namespace shardpack::image
