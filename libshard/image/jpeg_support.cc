#include "libshard/image/jpeg_support.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <string>

#include "libshard/image/codec.h"

namespace shardpack::image {
namespace {

// A hostile progressive file can hold thousands of scans of a few bytes that each cost a pass over the whole picture.
// libjpeg itself writes 10; the most that spectral selection and successive approximation give any use for is below
// this.
constexpr int kMaxScans = 500;

[[noreturn]] void Fail(j_common_ptr cinfo) {
  auto* errors = reinterpret_cast<JpegErrors*>(cinfo->err);
  errors->base.format_message(cinfo, errors->message);
  std::longjmp(errors->jump, 1);
}

// Warnings are how libjpeg reports damage that it papers over with grey. These few alone say nothing about the pixels.
bool IsHarmless(int warning) {
  switch (warning) {
    case JWRN_ADOBE_XFORM:      // unknown transform code: YCbCr, as everyone reads it
    case JWRN_EXTRANEOUS_DATA:  // stray bytes before a marker
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:  // the spectral numbers of a sequential scan, which nobody needs
    case JWRN_BOGUS_ICC:
      return true;
    default:
      return false;
  }
}

void OnMessage(j_common_ptr cinfo, int level) {
  if (level < 0 && !IsHarmless(cinfo->err->msg_code)) Fail(cinfo);
}
void Silent(j_common_ptr) {}
void NoSource(j_decompress_ptr) {}

boolean PastTheEnd(j_decompress_ptr cinfo) {
  reinterpret_cast<JpegErrors*>(cinfo->err)->truncated = true;
  FailJpeg(reinterpret_cast<j_common_ptr>(cinfo), JERR_INPUT_EOF);
}

void Skip(j_decompress_ptr cinfo, long count) {
  if (count <= 0) return;
  if (static_cast<std::size_t>(count) > cinfo->src->bytes_in_buffer) PastTheEnd(cinfo);
  cinfo->src->next_input_byte += count;
  cinfo->src->bytes_in_buffer -= static_cast<std::size_t>(count);
}

void LimitScans(j_common_ptr cinfo) {
  if (reinterpret_cast<j_decompress_ptr>(cinfo)->input_scan_number > kMaxScans) FailJpeg(cinfo, JERR_NOTIMPL);
}

void NoDestination(j_compress_ptr) {}

// std::vector may throw, which must not cross libjpeg's frames; nor may a jump leave a handler.
bool Grow(std::vector<std::byte>& out) {
  try {
    out.resize(out.size() * 2);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

boolean OnFull(j_compress_ptr cinfo) {
  auto* destination = reinterpret_cast<JpegDestination*>(cinfo->dest);
  const std::size_t used = destination->out->size();
  if (!Grow(*destination->out)) FailJpeg(reinterpret_cast<j_common_ptr>(cinfo), JERR_OUT_OF_MEMORY);
  destination->base.next_output_byte = reinterpret_cast<JOCTET*>(destination->out->data()) + used;
  destination->base.free_in_buffer = destination->out->size() - used;
  return TRUE;
}

// Only ever makes the vector shorter.
void OnEnd(j_compress_ptr cinfo) {
  auto* destination = reinterpret_cast<JpegDestination*>(cinfo->dest);
  destination->out->resize(destination->out->size() - destination->base.free_in_buffer);
}

}  // namespace

jpeg_error_mgr* JpegErrors::Init() {
  jpeg_std_error(&base);
  base.error_exit = Fail;
  base.emit_message = OnMessage;
  base.output_message = Silent;
  truncated = false;
  message[0] = '\0';
  return &base;
}

void JpegErrors::Throw() const {
  if (base.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
  if (truncated) ThrowTruncated("the JPEG ends before its end marker");
  ThrowBad(std::string("corrupt JPEG: ") + message);
}

void FailJpeg(j_common_ptr cinfo, int message) {
  cinfo->err->msg_code = message;
  Fail(cinfo);
}

void JpegSource::Attach(jpeg_decompress_struct& cinfo) {
  base.init_source = NoSource;
  base.fill_input_buffer = PastTheEnd;
  base.skip_input_data = Skip;
  base.resync_to_restart = jpeg_resync_to_restart;
  base.term_source = NoSource;
  progress.progress_monitor = LimitScans;
  cinfo.src = &base;
  cinfo.progress = &progress;
  cinfo.mem->max_memory_to_use = 0;  // libjpeg would take it from the environment; the pixel limit bounds memory
}

// libjpeg keeps tables for streams that leave them out. Among pictures of different origin that would decode damage, or
// a Motion JPEG frame, which means the standard tables, by what happened to come before.
void JpegSource::Set(jpeg_decompress_struct& cinfo, Bytes bytes) {
  std::fill(std::begin(cinfo.quant_tbl_ptrs), std::end(cinfo.quant_tbl_ptrs), nullptr);
  std::fill(std::begin(cinfo.dc_huff_tbl_ptrs), std::end(cinfo.dc_huff_tbl_ptrs), nullptr);
  std::fill(std::begin(cinfo.ac_huff_tbl_ptrs), std::end(cinfo.ac_huff_tbl_ptrs), nullptr);
  base.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  base.bytes_in_buffer = bytes.size();
}

void JpegDestination::Attach(jpeg_compress_struct& cinfo) {
  base.init_destination = NoDestination;
  base.empty_output_buffer = OnFull;
  base.term_destination = OnEnd;
  cinfo.dest = &base;
  cinfo.mem->max_memory_to_use = 0;
}

void JpegDestination::Set(std::vector<std::byte>& bytes, std::size_t expected) {
  out = &bytes;
  bytes.resize(std::max<std::size_t>(expected, 4096));
  base.next_output_byte = reinterpret_cast<JOCTET*>(bytes.data());
  base.free_in_buffer = bytes.size();
}

}  // namespace shardpack::image
