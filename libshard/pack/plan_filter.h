// Which inputs a request takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/pack.h"

namespace shardpack {

// --include, --exclude and --split. Pure, any thread.
class InputFilter {
 public:
  // Throws Error with kInvalidArgument: a share that does not lie in [0, 1].
  explicit InputFilter(const PackOptions& options);

  static std::uint64_t Hash(std::string_view key);
  bool Takes(std::string_view key, std::uint64_t hash) const;

 private:
  std::vector<std::string> include_, exclude_;
  // Hashes of the share: first_ and above, below end_ where there is one. Shares that meet at a fraction meet at a
  // hash.
  std::uint64_t first_ = 0;
  std::optional<std::uint64_t> end_;
  bool none_ = false;  // the share is empty
};

}  // namespace shardpack
