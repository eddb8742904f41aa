// JSON for byte strings that may not be UTF-8.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace shardpack {

// object[name] = bytes; where they are not UTF-8, object[name + "_hex"] = their hexadecimal digits.
void PutBytes(nlohmann::ordered_json& object, const std::string& name, std::string_view bytes);

}  // namespace shardpack
