// Members of a JSON object by their bytes, so that numbers keep all their digits and nothing changes its order.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shardpack {

// Takes the members called names[i] out of the object: values[i] is the text of its value, without white space outside
// of strings, or stays empty. Returns the object without them, likewise, every other byte as it was. Names may be
// written with escapes. Throws Error with kBadInput (no path): not well-formed JSON, no object, one of the members
// twice.
std::string TakeMembers(std::string_view json, std::span<const std::string_view> names,
                        std::span<std::optional<std::string>> values);

// The string that the text of a JSON string says. Precondition: it is well-formed.
std::string TextOfJsonString(std::string_view json);

}  // namespace shardpack
