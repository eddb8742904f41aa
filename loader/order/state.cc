#include "shardpack/loader/state.h"

#include <nlohmann/json.hpp>
#include <set>

#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

using Json = nlohmann::json;

[[noreturn]] void Refuse(const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "not a loader state: " + why);
}

bool IsHex(const std::string& text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::uint64_t Number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) Refuse(std::string("no \"") + key + '"');
  if (!found->is_number_unsigned()) Refuse(std::string("\"") + key + "\" is not a whole number of 64 bits");
  return found->get<std::uint64_t>();
}

std::string HexField(const Json& object, const char* key, std::size_t digits) {
  const auto found = object.find(key);
  if (found == object.end()) Refuse(std::string("no \"") + key + '"');
  if (!found->is_string() || !IsHex(found->get<std::string>(), digits)) {
    Refuse(std::string("\"") + key + "\" is not " + std::to_string(digits) + " lower-case hex digits");
  }
  return found->get<std::string>();
}

// A key given twice would leave open which one counts.
Json ParseObject(std::string_view text) {
  std::set<std::string> seen;
  std::string twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1 && !seen.insert(value.get<std::string>()).second) {
      twice = value.get<std::string>();
    }
    return true;
  };
  const Json object = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (object.is_discarded()) Refuse("malformed JSON");
  if (!object.is_object()) Refuse("not a JSON object");
  if (!twice.empty()) Refuse("\"" + Escaped(twice) + "\" stands twice");
  return object;
}

}  // namespace

std::string State::ToJson() const {
  return "{\"version\":" + std::to_string(version) + ",\"dataset\":\"" + dataset + "\",\"order\":\"" + order +
         "\",\"seed\":" + std::to_string(seed) + ",\"epoch\":" + std::to_string(epoch) +
         ",\"consumed\":" + std::to_string(consumed) + '}';
}

State State::FromJson(std::string_view text) {
  const Json object = ParseObject(text);
  const std::uint64_t version = Number(object, "version");
  if (version > 1) {
    throw Error(ErrorCode::kUnsupported,
                "loader state of version " + std::to_string(version) + "; this program knows 1");
  }
  if (version == 0) Refuse("\"version\" is 0");
  State state;
  state.dataset = HexField(object, "dataset", 32);
  state.order = HexField(object, "order", 16);
  state.seed = Number(object, "seed");
  state.epoch = Number(object, "epoch");
  state.consumed = Number(object, "consumed");
  constexpr std::size_t kKeys = 6;
  if (object.size() != kKeys) Refuse("it has keys this version does not know");
  return state;
}

}  // namespace shardpack::loader
