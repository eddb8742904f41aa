#include "libshard/pack/json_text.h"

#include "libshard/store/text.h"
#include "shardpack/error.h"

namespace shardpack {

void PutBytes(nlohmann::ordered_json& object, const std::string& name, std::string_view bytes) {
  if (IsUtf8(bytes)) {
    object[name] = bytes;
  } else {
    object[name + "_hex"] = ToHex(bytes);
  }
}

}  // namespace shardpack
