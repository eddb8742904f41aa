// What the sort of a plan moves: sort keys in the request's order, and inputs as payloads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libshard/pack/source.h"
#include "shardpack/pack.h"

namespace shardpack {

// An input between scan and plan. Views point into the payload.
struct FoundEntry {
  std::uint32_t source = 0;
  std::uint64_t sequence = 0, size = 0;
  std::int64_t label = 0;  // as LabelBook::Note() gave it
  std::string_view typed_label, metadata, locator, bad;
  ErrorCode bad_code = ErrorCode::kBadInput;
};

// Payloads of equal keys sort by source and sequence.
void EncodeEntry(const FoundEntry& entry, std::string& out);
FoundEntry DecodeEntry(std::string_view payload);  // of EncodeEntry()

// The sort key of an input in an order, and back to its key.
class SortOrder {
 public:
  SortOrder(const PackOptions& options, bool all_folders);

  RecordOrder order() const { return order_; }
  void EncodeKey(std::string_view key, std::uint32_t source, std::uint64_t sequence, std::string& out) const;
  std::string_view KeyOf(std::string_view sort_key) const;

 private:
  RecordOrder order_;  // never kDefault
  std::uint64_t seed_;
};

}  // namespace shardpack
