// Which records `amend` drops.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

struct DropList {
  std::vector<std::string> keys;        // ascending, each once
  std::uint64_t lines_without_key = 0;  // "key" is null there: a fault that belongs to no record

  // Tells one list from another, whatever the order of its lines and what else stands in them.
  Digest128 Digest() const;
};

// A ledger of any of our programs: JSON lines with "key" or "key_hex", or what `verify --json` prints, which lists them
// as "faults". Blank lines are passed over. Throws Error with kNotFound, kIo, kBadInput (naming the line, counted from
// 1).
DropList ReadDropList(const std::filesystem::path& ledger);

}  // namespace shardpack
