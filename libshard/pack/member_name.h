// Names of members of archives.
#pragma once

#include <string>
#include <string_view>

namespace shardpack {

// A member's name taken apart as WebDataset does. Views point into the name.
struct MemberName {
  std::string_view path;       // without "./" and "/" in front
  std::string_view key;        // up to the first dot of the last part
  std::string_view extension;  // behind that dot: "jpg", "seg.png"; empty without a dot
  bool hidden = false;         // some part begins with a dot, or is the folder __MACOSX
  bool leaves = false;         // a part is "..": it would lead out of the folder it is unpacked in
};
MemberName SplitMemberName(std::string_view name);

// "Seg.PNG" -> "seg.png"
std::string LowerCase(std::string_view text);

}  // namespace shardpack
