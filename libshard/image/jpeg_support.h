// What every use of libjpeg-turbo shares: failing by a jump to the caller, and memory as source and destination.
//
// libjpeg fails by longjmp: the function that calls setjmp(), and what it calls up to libjpeg, may hold nothing that
// needs a destructor.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h wants FILE
#include <vector>

#include "shardpack/record.h"

extern "C" {
#include <jerror.h>
#include <jpeglib.h>
}

namespace shardpack::image {

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg hands out a pointer to it
  std::jmp_buf jump;
  bool truncated = false;
  char message[JMSG_LENGTH_MAX];

  // Warnings become failures, but for the few that say nothing about pixels.
  jpeg_error_mgr* Init();
  // Throws Error with kBadInput for the failure that led to `jump`.
  [[noreturn]] void Throw() const;
};

// Fails with a libjpeg message number.
[[noreturn]] void FailJpeg(j_common_ptr cinfo, int message);

// Bytes that end where they end: reading on is a failure marked as `truncated`.
struct JpegSource {
  jpeg_source_mgr base = {};
  jpeg_progress_mgr progress = {};  // bounds the number of scans

  void Attach(jpeg_decompress_struct& cinfo);
  // For the next picture, which must not be decoded with the tables of the last one. What they took is freed with
  // `cinfo` alone: see NeedsRenewal().
  void Set(jpeg_decompress_struct& cinfo, Bytes bytes);
  // Counts pictures: now and then true, when `cinfo` is to be made anew.
  bool NeedsRenewal() { return ++pictures_ % kPicturesOfAnObject == 0; }

 private:
  static constexpr unsigned kPicturesOfAnObject = 64;  // 200 KB of tables at most
  unsigned pictures_ = 0;
};

// Grows a vector. At the end it is as long as what was written.
struct JpegDestination {
  jpeg_destination_mgr base = {};
  std::vector<std::byte>* out = nullptr;

  void Attach(jpeg_compress_struct& cinfo);
  void Set(std::vector<std::byte>& bytes, std::size_t expected);
};

}  // namespace shardpack::image
