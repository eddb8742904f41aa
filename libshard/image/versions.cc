#include "libshard/image/versions.h"

#include <cstdio>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>
#include <magick/api.h>
#include <png.h>
#include <webp/decode.h>
#include <webp/encode.h>

namespace shardpack {
namespace {

#define SHARDPACK_TEXT_OF(macro) SHARDPACK_TEXT(macro)
#define SHARDPACK_TEXT(tokens) #tokens

std::string Dotted(unsigned version) {
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xFF) + "." +
         std::to_string(version & 0xFF);
}

}  // namespace

std::string ImageLibraryVersions() {
  const auto webp = static_cast<unsigned>(WebPGetDecoderVersion());
  return std::string("libjpeg-turbo ") + SHARDPACK_TEXT_OF(LIBJPEG_TURBO_VERSION) + ", libpng " +
         png_get_libpng_ver(nullptr) + ", libwebp " + Dotted(webp) + ", GraphicsMagick " + MagickLibVersionText;
}

}  // namespace shardpack
