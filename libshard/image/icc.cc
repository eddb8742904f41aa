#include "libshard/image/icc.h"

#include <algorithm>
#include <string>

#include "libshard/image/codec.h"

namespace shardpack::image {
namespace {

constexpr std::size_t kHeaderBytes = 128, kTagBytes = 12;

// The body of the tag that describes the profile for people; empty where there is none.
Bytes Description(Bytes profile) {
  if (!Has(profile, kHeaderBytes, 4)) return {};
  const std::size_t tags = std::min<std::size_t>(U32(profile, kHeaderBytes, true), profile.size() / kTagBytes);
  for (std::size_t i = 0; i < tags; ++i) {
    const std::size_t at = kHeaderBytes + 4 + i * kTagBytes;
    if (!Has(profile, at, kTagBytes)) return {};
    if (AsText(profile.subspan(at, 4)) != "desc") continue;
    const std::size_t offset = U32(profile, at + 4, true), size = U32(profile, at + 8, true);
    return Has(profile, offset, size) ? profile.subspan(offset, size) : Bytes{};
  }
  return {};
}

}  // namespace

bool IsSrgbProfile(Bytes profile) {
  // As 8-bit text in version 2 and as UTF-16 in version 4: without its zeros that is the same.
  std::string text(AsText(Description(profile)));
  std::erase(text, '\0');
  return text.find("sRGB") != std::string::npos;
}

}  // namespace shardpack::image
