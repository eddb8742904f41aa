// Which keys were seen, by their hashes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

// 16 bytes a key, 27 with the room between: 10 million keys take 270 MB. XXH3-128 of two different keys is the same
// once in 10^24 sets of that size. In parts that grow one at a time, so that growing does not double what the set
// takes.
class KeySet {
 public:
  // False where it was there already.
  bool Insert(std::string_view key);
  bool Has(std::string_view key) const;

 private:
  struct Part {
    std::vector<Digest128> slots;  // all zero: free
    std::size_t used = 0;
  };
  static Digest128 HashOf(std::string_view key);
  // Its slot, or the free one it would take.
  static std::size_t Find(const Part& part, const Digest128& hash);

  std::array<Part, 256> parts_;
};

}  // namespace shardpack
