#include "shardpack/record.h"

#include "libshard/store/coding.h"
#include "libshard/store/text.h"
#include "shardpack/error.h"

namespace shardpack {

std::string_view Name(Encoding encoding) {
  switch (encoding) {
    case Encoding::kJpeg:
      return "jpeg";
    case Encoding::kPng:
      return "png";
    case Encoding::kWebp:
      return "webp";
    case Encoding::kBmp:
      return "bmp";
    case Encoding::kGif:
      return "gif";
    case Encoding::kTiff:
      return "tiff";
    case Encoding::kPnm:
      return "pnm";
    case Encoding::kPixels:
      return "pixels";
    case Encoding::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view FileExtension(Encoding encoding) {
  if (encoding == Encoding::kJpeg) return "jpg";
  return encoding == Encoding::kUnknown ? "bin" : Name(encoding);
}

std::string_view Name(Codec codec) {
  switch (codec) {
    case Codec::kStored:
      return "stored";
    case Codec::kZstd:
      return "zstd";
    case Codec::kZstdDictionary:
      return "zstd-dictionary";
    case Codec::kZstdBlock:
      return "zstd-block";
  }
  return "unknown";
}

std::string Digest128::Hex() const {
  std::string canonical(16, '\0');
  for (int i = 0; i < 8; ++i) {
    canonical[i] = static_cast<char>(high >> (56 - 8 * i));
    canonical[8 + i] = static_cast<char>(low >> (56 - 8 * i));
  }
  return ToHex(canonical);
}

Digest128 Digest128::FromHex(std::string_view hex) {
  const std::optional<std::string> bytes = hex.size() == 32 ? shardpack::FromHex(hex) : std::nullopt;
  if (!bytes) throw Error(ErrorCode::kCorruption, "not a digest of 32 lower-case hex digits: \"" + Escaped(hex) + "\"");
  Digest128 digest;
  for (int i = 0; i < 8; ++i) {
    digest.high = digest.high << 8 | static_cast<unsigned char>((*bytes)[i]);
    digest.low = digest.low << 8 | static_cast<unsigned char>((*bytes)[8 + i]);
  }
  return digest;
}

}  // namespace shardpack
