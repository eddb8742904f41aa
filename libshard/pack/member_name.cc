#include "libshard/pack/member_name.h"

namespace shardpack {
namespace {

// In front of all names of an archive that was made of "." or of an absolute path.
std::string_view WithoutRoot(std::string_view name) {
  for (;;) {
    if (name.starts_with('/')) {
      name.remove_prefix(1);
    } else if (name.starts_with("./")) {
      name.remove_prefix(2);
    } else {
      return name;
    }
  }
}

}  // namespace

MemberName SplitMemberName(std::string_view name) {
  MemberName split;
  split.path = WithoutRoot(name);
  std::string_view rest = split.path;
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part == "..") split.leaves = true;
    if ((part.starts_with('.') && part != "." && part != "..") || part == "__MACOSX") split.hidden = true;
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  const std::size_t dot = rest.find('.');
  const std::size_t folder_bytes = split.path.size() - rest.size();
  split.key = split.path.substr(0, dot == std::string_view::npos ? split.path.size() : folder_bytes + dot);
  if (dot != std::string_view::npos) split.extension = rest.substr(dot + 1);
  return split;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return lower;
}

}  // namespace shardpack
