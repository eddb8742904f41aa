#include "shardpack/label.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "shardpack/error.h"

namespace shardpack {
namespace {

using nlohmann::json;

bool IsList(const json& value) {
  if (!value.is_array()) return false;
  for (const json& number : value) {
    if (!number.is_number_integer()) return false;
  }
  return true;
}

// The shortest decimal that reads back as the same double.
std::string Shortest(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

}  // namespace

std::string LabelText(LabelKind kind, std::int64_t label, Bytes metadata) {
  if (kind == LabelKind::kClass || kind == LabelKind::kInteger) return std::to_string(label);
  const json object = json::parse(AsText(metadata), nullptr, false);
  if (object.is_object()) {
    const auto value = object.find("label");
    if (value != object.end() && kind == LabelKind::kList && IsList(*value)) return value->dump();
    if (value != object.end() && kind == LabelKind::kFloat && value->is_number()) return Shortest(value->get<double>());
  }
  throw Error(ErrorCode::kCorruption, "corrupt: the metadata of a record hold no label that is a " +
                                          std::string(kind == LabelKind::kList ? "list" : "number"));
}

std::string LabelText(const Dataset& dataset, std::uint64_t index) {
  const Dataset::Place place = dataset.PlaceOf(index);
  const ShardReader& shard = dataset.shard(place.shard);
  return LabelText(dataset.manifest().label_kind, shard.Info(place.record).label, shard.Metadata(place.record));
}

}  // namespace shardpack
