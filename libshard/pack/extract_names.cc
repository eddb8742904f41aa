#include "libshard/pack/extract_names.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "libshard/pack/member_name.h"
#include "libshard/pack/source.h"
#include "libshard/store/text.h"

namespace shardpack {
namespace {

// The name of the archive's member that the record was; empty for other records. It is believed only where it gives the
// record's key, perhaps with the archive's name before it: a column of a list may be called "member" too.
std::string MemberOf(std::string_view key, Bytes metadata) {
  if (metadata.empty()) return "";
  const auto object = nlohmann::json::parse(AsText(metadata), nullptr, false);
  if (!object.is_object()) return "";
  std::string member;
  if (const auto text = object.find("member"); text != object.end() && text->is_string()) {
    member = text->get<std::string>();
  } else if (const auto hex = object.find("member_hex"); hex != object.end() && hex->is_string()) {
    member = FromHex(hex->get_ref<const std::string&>()).value_or("");
  }
  const MemberName name = SplitMemberName(member);
  if (name.key.empty() || name.extension.empty() || !key.ends_with(name.key)) return "";
  const std::size_t prefix = key.size() - name.key.size();
  if (prefix > 0 && key[prefix - 1] != '/') return "";
  return std::string(key.substr(0, prefix)) + std::string(name.path);
}

// Where the extension of the last part begins, its dot included; the end where there is none.
std::size_t ExtensionOf(const std::string& name) {
  const std::size_t part = name.rfind('/') + 1;  // 0 where there is no folder
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot <= part ? name.size() : dot;
}

bool IsExtensionOf(Encoding encoding, std::string_view extension) {
  const std::string is = LowerCase(extension);
  switch (encoding) {
    case Encoding::kJpeg:
      return is == ".jpg" || is == ".jpeg" || is == ".jpe" || is == ".jfif";
    case Encoding::kTiff:
      return is == ".tif" || is == ".tiff";
    case Encoding::kPnm:
      return is == ".ppm" || is == ".pgm" || is == ".pbm" || is == ".pnm";
    case Encoding::kPixels:
      return is == ".png";  // what they are written as
    default:
      return is == "." + std::string(FileExtension(encoding));
  }
}

// Without parts that lead nowhere, as `find .` puts them before its paths. A root and ".." stay, for they are refused.
std::string WithoutIdleParts(std::string_view name) {
  std::string path;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size() - 1) + 1;
    const std::string_view part = name.substr(at, end - at);
    if (part != "./" && (part != "/" || at == 0)) path += part;
    at = end;
  }
  return path;
}

std::string ExtensionFor(Encoding encoding) {
  return "." + std::string(FileExtension(encoding == Encoding::kPixels ? Encoding::kPng : encoding));
}

}  // namespace

ExtractNames::ExtractNames(const Dataset& dataset) : dataset_(dataset) {
  const auto images = dataset.manifest().options.find("images");
  reencoded_ = images != dataset.manifest().options.end() && images->second != "keep";
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    std::string wanted = Wanted(i);
    if (wanted == dataset.Key(i)) continue;
    std::string name = FreeName(i, std::move(wanted));
    taken_.insert(name);
    changed_.emplace(i, std::move(name));
  }
}

std::string ExtractNames::Wanted(std::uint64_t index) const {
  const std::string_view key = dataset_.Key(index);
  const Dataset::Place place = dataset_.PlaceOf(index);
  std::string name = MemberOf(key, dataset_.shard(place.shard).Metadata(place.record));
  name = WithoutIdleParts(name.empty() ? key : name);
  const Encoding encoding = dataset_.Info(index).encoding;
  if ((!reencoded_ && encoding != Encoding::kPixels) || encoding == Encoding::kUnknown) return name;
  const std::size_t dot = ExtensionOf(name);
  if (IsExtensionOf(encoding, std::string_view(name).substr(dot))) return name;
  if (IsCandidateName(name)) name.resize(dot);  // else what follows the dot is no picture's extension
  return name + ExtensionFor(encoding);
}

std::string ExtractNames::FreeName(std::uint64_t index, std::string wanted) {
  const auto is_free = [&](const std::string& name) { return !taken_.contains(name) && !dataset_.Find(name); };
  if (is_free(wanted)) return wanted;
  const std::string key = WithoutIdleParts(dataset_.Key(index));
  const std::string extension = wanted.substr(ExtensionOf(wanted));
  std::string name = key + extension;
  for (std::uint64_t number = 2; !is_free(name); ++number) name = key + "." + std::to_string(number) + extension;
  return name;
}

std::string ExtractNames::Name(std::uint64_t index) const {
  const auto found = changed_.find(index);
  return found != changed_.end() ? found->second : std::string(dataset_.Key(index));
}

}  // namespace shardpack
