#include "libshard/image/jpeg.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "libshard/image/jpeg_support.h"
#include "shardpack/error.h"

namespace shardpack::image {
namespace {

constexpr int kRowsAtOnce = 8;

// Pillow's arithmetic: a*b/255, rounded.
inline std::uint32_t MulDiv255(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = a * b + 128;
  return (product + (product >> 8)) >> 8;
}

void InksToRgb(const std::uint8_t* inks, std::uint32_t width, bool inverted, std::uint8_t* rgb) {
  std::uint32_t flip = inverted ? 255 : 0;
  for (std::uint32_t x = 0; x < width; ++x, inks += 4, rgb += 3) {
    std::uint32_t paper = 255 - (inks[3] ^ flip);
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>(paper - MulDiv255(inks[c] ^ flip, paper));
  }
}

// Samplings whose rows after jpeg_skip_scanlines() were seen to equal those of an undivided reading, at all sizes
// tried; skipping has had faults in others. Skipped rows still cost their Huffman decoding: it saves a tenth for a
// typical crop.
bool SkipsExactly(const jpeg_decompress_struct& cinfo) {
  if (cinfo.num_components == 1) return true;
  if (cinfo.num_components != 3) return false;
  for (int i = 1; i < 3; ++i) {
    if (cinfo.comp_info[i].h_samp_factor != 1 || cinfo.comp_info[i].v_samp_factor != 1) return false;
  }
  int h = cinfo.comp_info[0].h_samp_factor, v = cinfo.comp_info[0].v_samp_factor;
  return (h == 1 && v == 1) || (h == 2 && (v == 1 || v == 2));
}

}  // namespace

struct JpegDecoder::Impl {
  jpeg_decompress_struct cinfo = {};
  JpegErrors errors = {};
  JpegSource source;
  std::vector<std::uint8_t> inks;

  // False after a failure, which `errors` describes. libjpeg fails by longjmp, so nothing here may need a destructor.
  bool Create();
  bool Start(Bytes bytes);
  bool ReadRows(Rows rows, std::uint8_t* pixels);
  void ReadInkRow(std::uint8_t* row);
};

bool JpegDecoder::Impl::Create() {
  cinfo.err = errors.Init();
  if (setjmp(errors.jump)) return false;
  jpeg_create_decompress(&cinfo);
  source.Attach(cinfo);
  return true;
}

bool JpegDecoder::Impl::Start(Bytes bytes) {
  if (source.NeedsRenewal()) {
    jpeg_destroy_decompress(&cinfo);
    if (!Create()) return false;
  }
  errors.truncated = false;
  source.Set(cinfo, bytes);
  if (setjmp(errors.jump)) return false;
  jpeg_read_header(&cinfo, TRUE);
  cinfo.out_color_space = cinfo.num_components == 4 ? JCS_CMYK : JCS_RGB;
  cinfo.dct_method = JDCT_ISLOW;
  cinfo.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&cinfo);
  return true;
}

void JpegDecoder::Impl::ReadInkRow(std::uint8_t* row) {
  JSAMPROW ink_row = inks.data();
  jpeg_read_scanlines(&cinfo, &ink_row, 1);
  InksToRgb(ink_row, cinfo.output_width, cinfo.saw_Adobe_marker, row);
}

bool JpegDecoder::Impl::ReadRows(Rows rows, std::uint8_t* pixels) {
  std::size_t stride = std::size_t{cinfo.output_width} * 3;
  if (setjmp(errors.jump)) return false;
  if (rows.first > 0 && SkipsExactly(cinfo)) jpeg_skip_scanlines(&cinfo, rows.first);
  while (cinfo.output_scanline < rows.end) {
    std::uint8_t* row = pixels + cinfo.output_scanline * stride;
    if (cinfo.out_color_space == JCS_CMYK) {
      ReadInkRow(row);
      continue;
    }
    JSAMPROW lines[kRowsAtOnce];
    JDIMENSION count = std::min<JDIMENSION>(kRowsAtOnce, rows.end - cinfo.output_scanline);
    for (JDIMENSION i = 0; i < count; ++i) lines[i] = row + i * stride;
    jpeg_read_scanlines(&cinfo, lines, count);
  }
  if (rows.end == cinfo.output_height) {
    jpeg_finish_decompress(&cinfo);  // goes on to the end marker: a file without one is cut off
  } else {
    jpeg_abort_decompress(&cinfo);
  }
  return true;
}

JpegDecoder::JpegDecoder() : impl_(std::make_unique<Impl>()) {
  if (!impl_->Create()) throw Error(ErrorCode::kUnsupported, std::string("libjpeg: ") + impl_->errors.message);
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&impl_->cinfo); }

void JpegDecoder::Decode(Bytes bytes, const StoredInfo& info, Rows rows, std::uint8_t* pixels) {
  assert(rows.first <= rows.end && rows.end <= info.height);
  Impl& impl = *impl_;
  bool done = impl.Start(bytes);
  bool as_probed = done && impl.cinfo.output_width == info.width && impl.cinfo.output_height == info.height;
  if (as_probed) {
    if (impl.cinfo.out_color_space == JCS_CMYK) impl.inks.resize(std::size_t{info.width} * 4);
    done = impl.ReadRows(rows, pixels);
  }
  if (done && as_probed) return;
  jpeg_abort_decompress(&impl.cinfo);
  if (done) ThrowBad("corrupt JPEG: its headers contradict each other");
  impl.errors.Throw();
}

}  // namespace shardpack::image
