// The inputs of one shard of a plan.
#include <algorithm>
#include <cstring>

#include "libshard/pack/plan_format.h"

namespace shardpack {
namespace {

constexpr std::uint8_t kHasMetadata = 1, kHasLocator = 2, kIsBad = 4;
// Flags, shared and own bytes of the key, source, size, sequence, label, skipped bytes.
constexpr std::uint64_t kMinInputBytes = 8;

// Where an input's texts lie in PlannedShard::text, which moves while it grows.
struct TextPlaces {
  std::uint64_t key = 0, metadata = 0, locator = 0, bad = 0;
};

}  // namespace

void EncodePlannedInput(const PlannedInput& input, std::string_view key_before, std::string& out) {
  const auto differ = std::mismatch(input.key.begin(), input.key.end(), key_before.begin(), key_before.end());
  const auto shared = static_cast<std::size_t>(differ.first - input.key.begin());
  out += static_cast<char>((input.metadata.empty() ? 0 : kHasMetadata) | (input.locator.empty() ? 0 : kHasLocator) |
                           (input.bad.empty() ? 0 : kIsBad));
  PutVarint(out, shared);
  PutText(out, input.key.substr(shared));
  PutVarint(out, input.source);
  PutVarint(out, input.size);
  PutVarint(out, input.sequence);
  PutSigned(out, input.label);
  PutVarint(out, input.key_skip);
  if (!input.metadata.empty()) PutText(out, input.metadata);
  if (!input.locator.empty()) PutText(out, input.locator);
  if (input.bad.empty()) return;
  PutVarint(out, static_cast<std::uint64_t>(input.bad_code));
  PutText(out, input.bad);
}

PlannedShard DecodePlanSection(Bytes section, std::uint64_t num_inputs, const Location& where) {
  PlanBytes from(section, where);
  if (num_inputs > section.size() / kMinInputBytes) from.Fail("more inputs than its section can hold");
  PlannedShard shard;
  shard.inputs.resize(num_inputs);
  shard.text = std::make_unique<std::string>();
  std::string& text = *shard.text;
  text.reserve(section.size());
  std::vector<TextPlaces> places(num_inputs);
  // Sizes now, addresses when the text stays where it is.
  const auto keep = [&](std::string_view& view, std::uint64_t& place, std::string_view content) {
    place = text.size();
    text += content;
    view = content;
  };
  std::size_t key_before = 0;
  std::uint64_t key_before_at = 0;
  for (std::uint64_t i = 0; i < num_inputs; ++i) {
    PlannedInput& input = shard.inputs[i];
    const std::uint8_t flags = from.Byte();
    if ((flags & ~(kHasMetadata | kHasLocator | kIsBad)) != 0) from.Fail("unknown flags of an input");
    const auto shared = from.Narrow<std::size_t>(key_before);
    const std::string_view rest = from.Text();
    if (rest.size() > kMaxPlannedKey || shared > kMaxPlannedKey - rest.size()) from.Fail("a key is too long");
    places[i].key = text.size();
    // Both parts before either: append() may move what the first one is taken from.
    text.resize(text.size() + shared + rest.size());
    std::memcpy(&text[places[i].key], &text[key_before_at], shared);
    if (!rest.empty()) std::memcpy(&text[places[i].key + shared], rest.data(), rest.size());
    key_before = shared + rest.size();
    key_before_at = places[i].key;
    input.key = std::string_view(text.data(), key_before);
    input.source = from.Narrow<std::uint32_t>();
    input.size = from.Varint();
    input.sequence = from.Varint();
    input.label = from.Signed();
    input.key_skip = from.Narrow<std::uint32_t>(key_before);
    if ((flags & kHasMetadata) != 0) keep(input.metadata, places[i].metadata, from.Text());
    if ((flags & kHasLocator) != 0) keep(input.locator, places[i].locator, from.Text());
    if ((flags & kIsBad) != 0) {
      input.bad_code = static_cast<ErrorCode>(from.Narrow<int>(static_cast<int>(ErrorCode::kBadInput)));
      keep(input.bad, places[i].bad, from.Text());
    }
  }
  if (!from.AtEnd()) from.Fail("its section is longer than its inputs");
  for (std::uint64_t i = 0; i < num_inputs; ++i) {
    PlannedInput& input = shard.inputs[i];
    const auto settle = [&](std::string_view& view, std::uint64_t place) {
      if (!view.empty()) view = std::string_view(text.data() + place, view.size());
    };
    settle(input.key, places[i].key);
    settle(input.metadata, places[i].metadata);
    settle(input.locator, places[i].locator);
    settle(input.bad, places[i].bad);
  }
  return shard;
}

}  // namespace shardpack
