#include "libshard/image/pixels.h"

#include <algorithm>
#include <cstring>

#include "libshard/image/grey_kernels.h"
#include "libshard/image/pixels_filter.h"
#include "shardpack/error.h"

namespace shardpack {
namespace image {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint32_t kLargestSide = INT32_MAX;

// What the header says beyond ImageInfo.
struct Header {
  StoredInfo info;
  std::uint16_t maximum = 0;
  std::size_t row_samples = 0;
  std::size_t row_bytes = 0;  // without the filter
};

Header ReadHeader(Bytes bytes) {
  if (bytes.size() < kPixelsHeaderBytes) ThrowTruncated("the file ends within its header");
  if (U8(bytes, 4) != kVersion) ThrowBad("pixels of version " + std::to_string(U8(bytes, 4)) + " are not supported");
  const std::uint32_t shape = U8(bytes, 5);
  if (shape >> 6 != 0) ThrowBad("corrupt pixels: unknown bits in the header");
  Header header;
  header.info.encoding = Encoding::kPixels;
  header.info.channels = static_cast<std::uint8_t>((shape & 3) + 1);
  header.info.bit_depth = shape & 4 ? 16 : 8;
  header.info.orientation = static_cast<Orientation>((shape >> 3 & 7) + 1);
  header.maximum = static_cast<std::uint16_t>(U16(bytes, 6, false));
  header.info.width = U32(bytes, 8, false);
  header.info.height = U32(bytes, 12, false);
  if (header.info.bit_depth == 8 && header.maximum != 0) ThrowBad("corrupt pixels: a largest value for 8 bits");
  if (header.info.width > kLargestSide || header.info.height > kLargestSide) ThrowBad("corrupt pixels: size");
  header.row_samples = std::size_t{header.info.width} * header.info.channels;
  header.row_bytes = header.row_samples * header.info.bit_depth / 8;
  return header;
}

// Of width 0 or height 0 image.cc complains, which is why they pass here.
Header CheckedHeader(Bytes bytes) {
  const Header header = ReadHeader(bytes);
  const std::size_t stride = header.row_bytes + 1, available = bytes.size() - kPixelsHeaderBytes;
  if (header.info.height > available / stride) ThrowTruncated("the pixels end before their last row");
  if (header.info.height * stride != available) ThrowBad("corrupt pixels: bytes after the last row");
  return header;
}

PixelsFilter FilterOf(std::byte value) {
  const auto filter = static_cast<std::uint8_t>(value);
  if (filter >= kPixelsFilters) ThrowBad("corrupt pixels: row filter " + std::to_string(filter));
  return static_cast<PixelsFilter>(filter);
}

const std::uint8_t* Unsigned(const std::byte* bytes) { return reinterpret_cast<const std::uint8_t*>(bytes); }

// Rows from `in` on, of `header`, that are stored as they are: `most` at most.
std::uint32_t UnfilteredRows(const std::byte* in, const Header& header, std::uint32_t most) {
  std::uint32_t rows = 0;
  while (rows < most && *in == std::byte{0}) {
    ++rows;
    in += header.row_bytes + 1;
  }
  return rows;
}

// `to8`: null for samples of 8 bits.
template <typename Sample>
void ToRgb(const Sample* row, std::size_t width, std::size_t channels, const std::uint8_t* to8, std::uint8_t* rgb) {
  const auto scaled = [to8](Sample value) { return to8 == nullptr ? static_cast<std::uint8_t>(value) : to8[value]; };
  const std::size_t green = channels >= 3 ? 1 : 0, blue = channels >= 3 ? 2 : 0;
  for (std::size_t x = 0; x < width; ++x, row += channels, rgb += 3) {
    rgb[0] = scaled(row[0]);
    rgb[1] = scaled(row[green]);
    rgb[2] = scaled(row[blue]);
  }
}

}  // namespace

StoredInfo ProbePixels(Bytes bytes) { return CheckedHeader(bytes).info; }

template <typename Sample>
void PixelsDecoder::DecodeScaled(Bytes bytes, const StoredInfo& info, std::uint32_t end_row, std::uint8_t* pixels) {
  const Header header = ReadHeader(bytes);
  const std::size_t count = header.row_samples;
  const std::uint8_t* to8 = sizeof(Sample) == 1 ? nullptr : to8_.data();
  rows_.resize(std::max(rows_.size(), 2 * count));
  auto* above = reinterpret_cast<Sample*>(rows_.data());
  auto* row = above + count;
  std::fill(above, above + count, Sample{0});
  const std::byte* in = bytes.data() + kPixelsHeaderBytes;
  for (std::uint32_t y = 0; y < end_row; ++y, in += header.row_bytes + 1, pixels += std::size_t{info.width} * 3) {
    UnfilterRow(FilterOf(*in), Unsigned(in + 1), above, count, info.channels, row);
    ToRgb(row, info.width, info.channels, to8, pixels);
    std::swap(row, above);
  }
}

// Rows without a filter, which is all that most tiny pictures have, are expanded where they lie, many at once.
void PixelsDecoder::DecodeGrey(Bytes bytes, const StoredInfo& info, std::uint32_t end_row, std::uint8_t* pixels) {
  const Header header = ReadHeader(bytes);
  const std::size_t width = info.width, stride = width + 1;
  rows_.resize(std::max(rows_.size(), width + 1));
  auto* spare = reinterpret_cast<std::uint8_t*>(rows_.data());
  auto* row = spare + width;
  std::fill(row, row + width, std::uint8_t{0});
  const std::uint8_t* above = row;
  const std::byte* in = bytes.data() + kPixelsHeaderBytes;
  for (std::uint32_t y = 0; y < end_row;) {
    std::uint32_t rows = UnfilteredRows(in, header, end_row - y);
    if (rows > 0) {
      GreyToRgb(Unsigned(in + 1), stride, width, rows, pixels);
      above = Unsigned(in + 1) + (rows - 1) * stride;
    } else {
      rows = 1;
      std::uint8_t* to = above == spare ? row : spare;
      UnfilterRow(FilterOf(*in), Unsigned(in + 1), above, width, 1, to);
      GreyToRgb(to, width, width, 1, pixels);
      above = to;
    }
    y += rows;
    in += rows * stride;
    pixels += rows * 3 * width;
  }
}

void PixelsDecoder::Decode(Bytes bytes, const StoredInfo& info, Rows rows, std::uint8_t* pixels) {
  if (info.bit_depth == 16) {
    const std::uint32_t maximum = ReadHeader(bytes).maximum;
    if (to8_.empty() || to8_maximum_ != maximum) {
      to8_.resize(65536);
      for (std::uint32_t value = 0; value < 65536; ++value) to8_[value] = ScaledTo8(value, maximum);
      to8_maximum_ = maximum;
    }
    return DecodeScaled<std::uint16_t>(bytes, info, rows.end, pixels);
  }
  if (info.channels == 1) return DecodeGrey(bytes, info, rows.end, pixels);
  if (info.channels != 3) return DecodeScaled<std::uint8_t>(bytes, info, rows.end, pixels);
  // What is wanted is what is filtered: each row is built on the one above it in place.
  const std::size_t count = std::size_t{info.width} * 3;
  rows_.resize(std::max(rows_.size(), count));
  auto* zeros = reinterpret_cast<std::uint8_t*>(rows_.data());
  std::fill(zeros, zeros + count, std::uint8_t{0});
  const std::uint8_t* above = zeros;
  const std::byte* in = bytes.data() + kPixelsHeaderBytes;
  for (std::uint32_t y = 0; y < rows.end; ++y, in += count + 1, pixels += count) {
    UnfilterRow(FilterOf(*in), Unsigned(in + 1), above, count, 3, pixels);
    above = pixels;
  }
}

}  // namespace image

void DecodePixels(Bytes pixels, const ImageLimits& limits, Samples& out) {
  if (!AsText(pixels).starts_with(image::kPixelsMagic)) image::ThrowBad("not filtered pixels");
  const image::Header header = image::CheckedHeader(pixels);
  image::CheckSize(header.info, limits);
  out.width = header.info.width;
  out.height = header.info.height;
  out.channels = header.info.channels;
  out.bit_depth = header.info.bit_depth;
  out.orientation = header.info.orientation;
  out.maximum = header.maximum;
  out.data.resize(header.row_bytes * out.height);
  const std::size_t count = header.row_samples;
  std::vector<std::uint16_t> rows(2 * count);
  std::uint16_t *above = rows.data(), *row = above + count;
  const auto* above8 = reinterpret_cast<const std::uint8_t*>(rows.data());
  const std::byte* in = pixels.data() + image::kPixelsHeaderBytes;
  auto* to = reinterpret_cast<std::uint8_t*>(out.data.data());
  for (std::uint32_t y = 0; y < out.height; ++y, in += header.row_bytes + 1, to += header.row_bytes) {
    const image::PixelsFilter filter = image::FilterOf(*in);
    if (out.bit_depth == 8) {
      image::UnfilterRow(filter, image::Unsigned(in + 1), above8, count, out.channels, to);
      above8 = to;
      continue;
    }
    image::UnfilterRow(filter, image::Unsigned(in + 1), above, count, out.channels, row);
    for (std::size_t i = 0; i < count; ++i) {
      to[2 * i] = static_cast<std::uint8_t>(row[i]);
      to[2 * i + 1] = static_cast<std::uint8_t>(row[i] >> 8);
    }
    std::swap(above, row);
  }
}

}  // namespace shardpack
