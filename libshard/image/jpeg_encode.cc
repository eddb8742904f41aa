#include "libshard/image/jpeg_encode.h"

#include <algorithm>
#include <cassert>

#include "libshard/image/codec.h"
#include "libshard/image/jpeg_support.h"
#include "shardpack/error.h"

namespace shardpack::image {
namespace {

constexpr std::uint32_t kMaxDimension = JPEG_MAX_DIMENSION;

}  // namespace

struct JpegEncoder::Impl {
  jpeg_compress_struct cinfo = {};
  JpegErrors errors = {};
  JpegDestination destination;
  std::vector<std::uint8_t> grey_row;

  // False after a failure, which `errors` describes.
  bool Create();
  bool Write(const Image& image, bool grey, int quality, int chroma);
  void SetUp(const Image& image, bool grey, int quality, int chroma);
};

bool JpegEncoder::Impl::Create() {
  cinfo.err = errors.Init();
  if (setjmp(errors.jump)) return false;
  jpeg_create_compress(&cinfo);
  destination.Attach(cinfo);
  return true;
}

void JpegEncoder::Impl::SetUp(const Image& image, bool grey, int quality, int chroma) {
  cinfo.image_width = image.width;
  cinfo.image_height = image.height;
  cinfo.input_components = grey ? 1 : 3;
  cinfo.in_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&cinfo);
  jpeg_set_quality(&cinfo, quality, TRUE);
  // The integer transform gives the same bytes with and without SIMD, and so do the other stages.
  cinfo.dct_method = JDCT_ISLOW;
  cinfo.optimize_coding = TRUE;
  cinfo.comp_info[0].h_samp_factor = grey || chroma == 444 ? 1 : 2;
  cinfo.comp_info[0].v_samp_factor = grey || chroma != 420 ? 1 : 2;
  const std::uint32_t row_pixels = DCTSIZE * static_cast<std::uint32_t>(cinfo.comp_info[0].v_samp_factor);
  cinfo.restart_in_rows = image.height > row_pixels ? 1 : 0;
}

bool JpegEncoder::Impl::Write(const Image& image, bool grey, int quality, int chroma) {
  if (setjmp(errors.jump)) return false;
  SetUp(image, grey, quality, chroma);
  jpeg_start_compress(&cinfo, TRUE);
  while (cinfo.next_scanline < cinfo.image_height) {
    const std::uint8_t* row = image.pixels.data() + std::size_t{cinfo.next_scanline} * image.width * 3;
    JSAMPROW line = const_cast<JSAMPROW>(row);  // libjpeg only reads it
    if (grey) {
      for (std::uint32_t x = 0; x < image.width; ++x) grey_row[x] = row[3 * std::size_t{x}];
      line = grey_row.data();
    }
    jpeg_write_scanlines(&cinfo, &line, 1);
  }
  jpeg_finish_compress(&cinfo);
  return true;
}

JpegEncoder::JpegEncoder() : impl_(std::make_unique<Impl>()) {
  if (!impl_->Create()) throw Error(ErrorCode::kUnsupported, std::string("libjpeg: ") + impl_->errors.message);
}

JpegEncoder::~JpegEncoder() { jpeg_destroy_compress(&impl_->cinfo); }

void JpegEncoder::Encode(const Image& image, bool grey, int quality, int chroma, std::vector<std::byte>& out) {
  assert(quality >= 1 && quality <= 100 && (chroma == 444 || chroma == 422 || chroma == 420));
  assert(image.pixels.size() == std::size_t{image.width} * image.height * 3);
  if (image.width > kMaxDimension || image.height > kMaxDimension) {
    ThrowBad("a JPEG cannot be wider or higher than " + std::to_string(kMaxDimension));
  }
  if (grey) impl_->grey_row.resize(image.width);
  impl_->destination.Set(out, std::size_t{image.width} * image.height / 2);
  if (impl_->Write(image, grey, quality, chroma)) return;
  jpeg_abort_compress(&impl_->cinfo);
  impl_->errors.Throw();
}

}  // namespace shardpack::image
