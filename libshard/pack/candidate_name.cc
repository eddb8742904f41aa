#include <algorithm>
#include <iterator>

#include "libshard/pack/source.h"

namespace shardpack {

bool IsCandidateName(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot - 1 > 4) return false;
  std::string extension(name.substr(dot + 1));
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  static constexpr std::string_view kCandidates[] = {"jpg", "jpeg", "jpe",  "jfif", "png", "webp", "bmp",
                                                     "gif", "tif",  "tiff", "ppm",  "pgm", "pbm",  "pnm"};
  return std::find(std::begin(kCandidates), std::end(kCandidates), extension) != std::end(kCandidates);
}

}  // namespace shardpack
