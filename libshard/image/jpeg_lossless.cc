#include "libshard/image/jpeg_lossless.h"

#include <algorithm>
#include <cstring>

#include "libshard/image/exif.h"
#include "libshard/image/icc.h"
#include "libshard/image/jpeg_support.h"
#include "shardpack/error.h"

namespace shardpack::image {
namespace {

constexpr int kApp0 = JPEG_APP0, kApp1 = JPEG_APP0 + 1, kApp2 = JPEG_APP0 + 2, kApp14 = JPEG_APP0 + 14;
constexpr unsigned kProfileStart = 14;                 // behind the name, the number and the count of the pieces
constexpr unsigned kJfifBytes = 14, kAdobeBytes = 12;  // as far as libjpeg reads them

bool StartsWith(const jpeg_marker_struct& marker, std::string_view text) {
  return marker.data_length >= text.size() && std::memcmp(marker.data, text.data(), text.size()) == 0;
}
bool IsJfif(const jpeg_marker_struct& marker) {
  return marker.marker == kApp0 && marker.data_length >= kJfifBytes &&
         StartsWith(marker, std::string_view("JFIF\0", 5));
}
bool IsAdobe(const jpeg_marker_struct& marker) {
  return marker.marker == kApp14 && marker.data_length >= kAdobeBytes && StartsWith(marker, "Adobe");
}
// Of a colour profile, which may take several markers. One that says sRGB says nothing, and one photograph in five
// has such a one, of 3 KB.
bool IsProfile(const jpeg_marker_struct& marker) {
  return marker.marker == kApp2 && StartsWith(marker, std::string_view("ICC_PROFILE\0", 12));
}
// std::string has a destructor: not to be called between setjmp() and libjpeg.
bool HasSrgbProfile(const jpeg_decompress_struct& cinfo) {
  for (const jpeg_marker_struct* marker = cinfo.marker_list; marker != nullptr; marker = marker->next) {
    if (!IsProfile(*marker) || marker->data_length < kProfileStart) continue;
    const auto body = std::as_bytes(std::span(marker->data + kProfileStart, marker->data_length - kProfileStart));
    if (marker->data[kProfileStart - 2] == 1) return IsSrgbProfile(body);  // the first piece has the description
  }
  return false;
}

// A progressive picture that lacks scans is smoothed by libjpeg where it is decoded; a sequential one would not be.
bool IsComplete(const jpeg_decompress_struct& cinfo) {
  if (!cinfo.progressive_mode) return true;
  for (int component = 0; component < cinfo.num_components; ++component) {
    const int* bits = cinfo.coef_bits[component];
    if (!std::all_of(bits, bits + DCTSIZE2, [](int left) { return left == 0; })) return false;
  }
  return true;
}

// Baseline's quantisation tables have 8 bits.
bool HasByteTables(const jpeg_decompress_struct& cinfo) {
  for (int component = 0; component < cinfo.num_components; ++component) {
    const JQUANT_TBL* table = cinfo.comp_info[component].quant_table;
    if (table == nullptr) return false;  // of a component without a scan
    if (std::any_of(table->quantval, table->quantval + DCTSIZE2, [](UINT16 value) { return value > 255; }))
      return false;
  }
  return true;
}

// What the interpretation of the components hangs on.
struct ColourMarkers {
  bool jfif = false, adobe = false;
  int transform = 0;

  static ColourMarkers Of(const jpeg_decompress_struct& cinfo) {
    return {cinfo.saw_JFIF_marker != 0, cinfo.saw_Adobe_marker != 0, cinfo.Adobe_transform};
  }
  friend bool operator==(const ColourMarkers&, const ColourMarkers&) = default;
};

// A JPEG whose coefficients are in memory.
struct Picture {
  jpeg_decompress_struct cinfo = {};
  JpegSource source;
  jvirt_barray_ptr* coefficients = nullptr;
  ColourMarkers markers;  // before the first scan
};

}  // namespace

struct JpegRewriter::Impl {
  JpegErrors errors = {};
  Picture first, second;
  jpeg_compress_struct writer = {};
  JpegDestination destination;
  std::vector<std::byte> written;

  // Each returns false after a failure, which `errors` describes.
  bool Create();
  bool Open(Picture& picture);
  bool Read(Bytes jpeg, Picture& picture);
  bool Write(Orientation orientation, bool profile);
  bool Compare(bool& same);

  void CopyMarkers(Orientation orientation, bool profile);
  void WriteMarker(const jpeg_marker_struct& marker, unsigned bytes) {
    jpeg_write_marker(&writer, marker.marker, marker.data, bytes);
  }
  bool SameComponent(int component);
  void Release();
};

bool JpegRewriter::Impl::Create() {
  writer.err = errors.Init();
  if (setjmp(errors.jump)) return false;
  jpeg_create_compress(&writer);
  destination.Attach(writer);
  return Open(first) && Open(second);
}

bool JpegRewriter::Impl::Open(Picture& picture) {
  picture.cinfo.err = &errors.base;
  if (setjmp(errors.jump)) return false;
  jpeg_create_decompress(&picture.cinfo);
  picture.source.Attach(picture.cinfo);
  for (int marker : {kApp0, kApp2, kApp14}) jpeg_save_markers(&picture.cinfo, marker, 0xFFFF);
  return true;
}

bool JpegRewriter::Impl::Read(Bytes jpeg, Picture& picture) {
  if (picture.source.NeedsRenewal()) {
    jpeg_destroy_decompress(&picture.cinfo);
    if (!Open(picture)) return false;
  }
  errors.truncated = false;
  picture.source.Set(picture.cinfo, jpeg);
  if (setjmp(errors.jump)) return false;
  jpeg_read_header(&picture.cinfo, TRUE);
  picture.markers = ColourMarkers::Of(picture.cinfo);
  picture.coefficients = jpeg_read_coefficients(&picture.cinfo);
  return true;
}

// JFIF without its thumbnail, the orientation, the colour profile where there is one to keep, and Adobe's, which tells
// RGB from YCbCr and whether inks are inverted.
void JpegRewriter::Impl::CopyMarkers(Orientation orientation, bool profile) {
  const jpeg_marker_struct *jfif = nullptr, *adobe = nullptr;
  for (const jpeg_marker_struct* marker = first.cinfo.marker_list; marker != nullptr; marker = marker->next) {
    if (IsJfif(*marker) && jfif == nullptr) jfif = marker;
    if (IsAdobe(*marker)) adobe = marker;  // of several the last one counts
  }
  if (jfif != nullptr) {
    JOCTET data[kJfifBytes];
    std::memcpy(data, jfif->data, kJfifBytes);
    data[kJfifBytes - 2] = data[kJfifBytes - 1] = 0;  // width and height of the thumbnail
    jpeg_write_marker(&writer, kApp0, data, kJfifBytes);
  }
  if (orientation != 1) {
    JOCTET data[6 + kExifBytes] = {'E', 'x', 'i', 'f'};
    PutExif(orientation, data + 6);
    jpeg_write_marker(&writer, kApp1, data, sizeof data);
  }
  for (const jpeg_marker_struct* marker = first.cinfo.marker_list; marker != nullptr; marker = marker->next) {
    if (profile && IsProfile(*marker)) WriteMarker(*marker, marker->data_length);
  }
  if (adobe != nullptr) WriteMarker(*adobe, kAdobeBytes);
}

bool JpegRewriter::Impl::Write(Orientation orientation, bool profile) {
  if (setjmp(errors.jump)) return false;
  jpeg_copy_critical_parameters(&first.cinfo, &writer);
  writer.write_JFIF_header = FALSE;  // markers are copied as they were
  writer.write_Adobe_marker = FALSE;
  writer.optimize_coding = TRUE;
  const jpeg_component_info& component = first.cinfo.comp_info[0];
  const JDIMENSION rows = first.cinfo.num_components == 1 ? component.height_in_blocks : first.cinfo.total_iMCU_rows;
  writer.restart_interval = 0;
  writer.restart_in_rows = rows > 1 ? 1 : 0;
  jpeg_write_coefficients(&writer, first.coefficients);
  CopyMarkers(orientation, profile);
  jpeg_finish_compress(&writer);
  return true;
}

bool JpegRewriter::Impl::SameComponent(int index) {
  const jpeg_component_info &a = first.cinfo.comp_info[index], &b = second.cinfo.comp_info[index];
  if (a.component_id != b.component_id || a.h_samp_factor != b.h_samp_factor || a.v_samp_factor != b.v_samp_factor ||
      a.width_in_blocks != b.width_in_blocks || a.height_in_blocks != b.height_in_blocks) {
    return false;
  }
  if ((a.quant_table == nullptr) != (b.quant_table == nullptr)) return false;
  if (a.quant_table != nullptr &&
      !std::equal(a.quant_table->quantval, a.quant_table->quantval + DCTSIZE2, b.quant_table->quantval)) {
    return false;
  }
  for (JDIMENSION row = 0; row < a.height_in_blocks; ++row) {
    const auto read = [&](Picture& picture) {
      auto* common = reinterpret_cast<j_common_ptr>(&picture.cinfo);
      return picture.cinfo.mem->access_virt_barray(common, picture.coefficients[index], row, 1, FALSE)[0];
    };
    if (std::memcmp(read(first), read(second), a.width_in_blocks * sizeof(JBLOCK)) != 0) return false;
  }
  return true;
}

bool JpegRewriter::Impl::Compare(bool& same) {
  if (setjmp(errors.jump)) return false;
  same = first.cinfo.image_width == second.cinfo.image_width && first.cinfo.image_height == second.cinfo.image_height &&
         first.cinfo.num_components == second.cinfo.num_components;
  for (int i = 0; same && i < first.cinfo.num_components; ++i) same = SameComponent(i);
  return true;
}

// Aborting frees the picture's memory and cannot fail.
void JpegRewriter::Impl::Release() {
  jpeg_abort_compress(&writer);
  jpeg_abort_decompress(&first.cinfo);
  jpeg_abort_decompress(&second.cinfo);
}

JpegRewriter::JpegRewriter() : impl_(std::make_unique<Impl>()) {
  if (!impl_->Create()) throw Error(ErrorCode::kUnsupported, std::string("libjpeg: ") + impl_->errors.message);
}

JpegRewriter::~JpegRewriter() {
  jpeg_destroy_compress(&impl_->writer);
  jpeg_destroy_decompress(&impl_->first.cinfo);
  jpeg_destroy_decompress(&impl_->second.cinfo);
}

bool JpegRewriter::ToBaseline(Bytes jpeg, const StoredInfo& info, std::vector<std::byte>& out) {
  Impl& impl = *impl_;
  if (!impl.Read(jpeg, impl.first)) {
    impl.Release();
    impl.errors.Throw();
  }
  const jpeg_decompress_struct& cinfo = impl.first.cinfo;
  bool done = IsComplete(cinfo) && HasByteTables(cinfo) && ColourMarkers::Of(cinfo) == impl.first.markers;
  if (done) {
    impl.destination.Set(impl.written, jpeg.size() + jpeg.size() / 4);
    // A failure here is a thing that baseline cannot hold: tables that change between scans, too many blocks in an MCU,
    // coefficients beyond its codes.
    done = impl.Write(info.orientation, !HasSrgbProfile(cinfo));
    if (done) out.swap(impl.written);
    if (!done && impl.errors.base.msg_code == JERR_OUT_OF_MEMORY) {
      impl.Release();
      impl.errors.Throw();
    }
  }
  impl.Release();
  return done;
}

bool JpegRewriter::SameCoefficients(Bytes a, Bytes b) {
  Impl& impl = *impl_;
  bool same = false;
  const bool done = impl.Read(a, impl.first) && impl.Read(b, impl.second) && impl.Compare(same);
  impl.Release();
  if (!done) impl.errors.Throw();
  return same;
}

namespace {

constexpr std::uint8_t kScan = 0xDA;

bool IsRestart(std::uint8_t marker) { return marker >= 0xD0 && marker <= 0xD7; }

void PutVarint(std::uint64_t value, std::vector<std::byte>& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
  out.push_back(static_cast<std::byte>(value));
}

// Behind the header of the first scan.
std::size_t FirstScan(Bytes jpeg) {
  for (std::size_t at = 2; Has(jpeg, at, 4);) {
    const std::size_t length = U16(jpeg, at + 2, true) + std::size_t{2};
    if (U8(jpeg, at + 1) == kScan) return at + length;
    at += length;
  }
  return jpeg.size();
}

}  // namespace

void RowPositions(Bytes jpeg, std::vector<std::byte>& out) {
  out.clear();
  std::size_t at = FirstScan(jpeg), last = 0;
  PutVarint(at, out);
  last = at;
  while (Has(jpeg, at, 2)) {
    const void* found = std::memchr(jpeg.data() + at, 0xFF, jpeg.size() - at - 1);
    if (found == nullptr) return;
    at = static_cast<std::size_t>(static_cast<const std::byte*>(found) - jpeg.data()) + 2;
    const std::uint8_t marker = U8(jpeg, at - 1);
    if (marker == 0) continue;
    if (!IsRestart(marker)) return;
    PutVarint(at - last, out);
    last = at;
  }
}

}  // namespace shardpack::image
