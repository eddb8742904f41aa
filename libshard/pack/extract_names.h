// The names that records get as files.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "shardpack/dataset.h"

namespace shardpack {

// A record's file is named by its key. Three things change that: a record of an archive gets the name that its member
// had, parts of a path that lead nowhere ("./a//b") are left out, and a record whose encoding was changed by packing
// gets the extension of what it is now, in the place of another picture's. Where a changed name is that of another
// record, the extension is added to the key instead, and then a number before it.
//
// Memory is taken for changed names alone. Const members from any thread.
class ExtractNames {
 public:
  explicit ExtractNames(const Dataset& dataset);

  std::string Name(std::uint64_t index) const;

 private:
  // As it would be without others; the key where nothing changes it.
  std::string Wanted(std::uint64_t index) const;
  std::string FreeName(std::uint64_t index, std::string wanted);

  const Dataset& dataset_;
  bool reencoded_ = false;  // by the options the dataset was made with
  std::unordered_map<std::uint64_t, std::string> changed_;
  std::unordered_set<std::string> taken_;  // by changed names
};

}  // namespace shardpack
