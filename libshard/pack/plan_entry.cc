#include "libshard/pack/plan_entry.h"

#include "libshard/pack/plan_format.h"
#include "libshard/store/coding.h"

namespace shardpack {
namespace {

constexpr std::uint8_t kTypedLabel = 1, kMetadata = 2, kLocator = 4, kBad = 8;

// Numbers whose bytes sort as they do: how many bytes follow, then those, the highest first.
void PutOrdered(std::string& out, std::uint64_t value) {
  int bytes = 0;
  while (bytes < 8 && value >> (8 * bytes) != 0) ++bytes;
  out += static_cast<char>(bytes);
  for (int i = bytes; i-- > 0;) out += static_cast<char>(value >> (8 * i));
}

std::uint64_t TakeOrdered(std::string_view& from) {
  const auto bytes = static_cast<std::size_t>(from[0]);
  std::uint64_t value = 0;
  for (std::size_t i = 1; i <= bytes; ++i) value = value << 8 | static_cast<std::uint8_t>(from[i]);
  from.remove_prefix(1 + bytes);
  return value;
}

}  // namespace

void EncodeEntry(const FoundEntry& entry, std::string& out) {
  PutOrdered(out, entry.source);
  PutOrdered(out, entry.sequence);
  out += static_cast<char>((entry.typed_label.empty() ? 0 : kTypedLabel) | (entry.metadata.empty() ? 0 : kMetadata) |
                           (entry.locator.empty() ? 0 : kLocator) | (entry.bad.empty() ? 0 : kBad));
  PutVarint(out, entry.size);
  PutSigned(out, entry.label);
  for (const std::string_view text : {entry.typed_label, entry.metadata, entry.locator}) {
    if (!text.empty()) PutText(out, text);
  }
  if (entry.bad.empty()) return;
  out += static_cast<char>(entry.bad_code);
  PutText(out, entry.bad);
}

FoundEntry DecodeEntry(std::string_view payload) {
  FoundEntry entry;
  entry.source = static_cast<std::uint32_t>(TakeOrdered(payload));
  entry.sequence = TakeOrdered(payload);
  static const Location kNowhere{"the sorted inputs", {}, {}};
  PlanBytes from(AsBytes(payload), kNowhere);
  const std::uint8_t flags = from.Byte();
  entry.size = from.Varint();
  entry.label = from.Signed();
  if ((flags & kTypedLabel) != 0) entry.typed_label = from.Text();
  if ((flags & kMetadata) != 0) entry.metadata = from.Text();
  if ((flags & kLocator) != 0) entry.locator = from.Text();
  if ((flags & kBad) != 0) {
    entry.bad_code = static_cast<ErrorCode>(from.Byte());
    entry.bad = from.Text();
  }
  return entry;
}

SortOrder::SortOrder(const PackOptions& options, bool all_folders) : order_(options.order), seed_(options.order_seed) {
  if (order_ == RecordOrder::kDefault) order_ = all_folders ? RecordOrder::kName : RecordOrder::kSource;
}

void SortOrder::EncodeKey(std::string_view key, std::uint32_t source, std::uint64_t sequence, std::string& out) const {
  if (order_ == RecordOrder::kSource) {
    PutOrdered(out, source);
    PutOrdered(out, sequence);
  } else if (order_ == RecordOrder::kShuffled) {
    std::string seeded(sizeof seed_, '\0');
    Store(seeded.data(), seed_);
    const std::uint64_t hash = Xxh3_64(AsBytes(seeded.append(key)));
    for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(hash >> shift);
  }
  out += key;
}

std::string_view SortOrder::KeyOf(std::string_view sort_key) const {
  if (order_ == RecordOrder::kSource) {
    TakeOrdered(sort_key);
    TakeOrdered(sort_key);
  } else if (order_ == RecordOrder::kShuffled) {
    sort_key.remove_prefix(sizeof(std::uint64_t));
  }
  return sort_key;
}

}  // namespace shardpack
