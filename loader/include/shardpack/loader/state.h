// Where a run stands: tiny, readable, the same on every rank, independent of world size and batch size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardpack::loader {

struct State {
  std::uint32_t version = 1;
  std::string dataset;  // dataset digest, 32 hex digits
  std::string order;    // Order::Hash()
  std::uint64_t seed = 0, epoch = 0, consumed = 0;

  // {"version":1,"dataset":DIGEST,"order":HASH,"seed":S,"epoch":E,"consumed":C}; under 200 bytes.
  std::string ToJson() const;
  // Throws Error with kInvalidArgument for anything else, kUnsupported for a newer version.
  static State FromJson(std::string_view text);
  friend bool operator==(const State&, const State&) = default;
};

}  // namespace shardpack::loader
