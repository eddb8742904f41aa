#include "loader/decode/picture_writer.h"

#include <cstring>

namespace shardpack::loader {
namespace {

struct SameByte {
  std::uint8_t operator()(int, std::uint8_t v) const { return v; }
};

struct FromTable {
  const NormaliseTable& table;
  float operator()(int channel, std::uint8_t v) const { return table.value[channel][v]; }
};

// Walks each row forwards in the output and forwards or backwards in the input. kStep is 3 or -3 so that the compiler
// sees a constant.
template <int kStep, typename T, typename Convert>
void WriteNhwc(const std::uint8_t* rgb, std::uint32_t width, std::uint32_t height, Convert convert, T* out) {
  const std::size_t row_bytes = std::size_t{width} * 3;
  for (std::uint32_t y = 0; y < height; ++y, rgb += row_bytes) {
    const std::uint8_t* in = kStep > 0 ? rgb : rgb + row_bytes - 3;
    for (std::uint32_t x = 0; x < width; ++x, in += kStep, out += 3) {
      out[0] = convert(0, in[0]);
      out[1] = convert(1, in[1]);
      out[2] = convert(2, in[2]);
    }
  }
}

template <int kStep, typename T, typename Convert>
void WriteNchw(const std::uint8_t* rgb, std::uint32_t width, std::uint32_t height, Convert convert, T* out) {
  const std::size_t row_bytes = std::size_t{width} * 3, plane = std::size_t{width} * height;
  T *red = out, *green = out + plane, *blue = out + 2 * plane;
  for (std::uint32_t y = 0; y < height; ++y, rgb += row_bytes) {
    const std::uint8_t* in = kStep > 0 ? rgb : rgb + row_bytes - 3;
    for (std::uint32_t x = 0; x < width; ++x, in += kStep) {
      *red++ = convert(0, in[0]);
      *green++ = convert(1, in[1]);
      *blue++ = convert(2, in[2]);
    }
  }
}

template <typename T, typename Convert>
void WriteAs(const std::uint8_t* rgb, std::uint32_t width, std::uint32_t height, Layout layout, bool flip,
             Convert convert, T* out) {
  if (layout == Layout::kNhwc) {
    flip ? WriteNhwc<-3>(rgb, width, height, convert, out) : WriteNhwc<3>(rgb, width, height, convert, out);
  } else {
    flip ? WriteNchw<-3>(rgb, width, height, convert, out) : WriteNchw<3>(rgb, width, height, convert, out);
  }
}

}  // namespace

PictureWriter::PictureWriter(std::uint32_t width, std::uint32_t height, DType dtype, Layout layout,
                             const std::array<float, 3>& mean, const std::array<float, 3>& deviation)
    : width_(width),
      height_(height),
      dtype_(dtype),
      layout_(layout),
      picture_bytes_(std::size_t{width} * height * 3 * SizeOf(dtype)),
      table_(MakeNormaliseTable(mean, deviation)) {}

void PictureWriter::Write(const std::uint8_t* rgb, bool flip, std::byte* out) const {
  if (IsCopy(flip)) {
    std::memcpy(out, rgb, picture_bytes_);
  } else if (dtype_ == DType::kFloat32) {
    WriteAs(rgb, width_, height_, layout_, flip, FromTable{table_}, reinterpret_cast<float*>(out));
  } else {
    WriteAs(rgb, width_, height_, layout_, flip, SameByte{}, reinterpret_cast<std::uint8_t*>(out));
  }
}

}  // namespace shardpack::loader
