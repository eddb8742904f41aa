// The list of bad records, one JSON object a line.
#pragma once

#include <filesystem>

#include "shardpack/loader/report.h"

namespace shardpack::loader {

// Appends lines to a file that other ranks may append to as well: each line is one write. Opens it at the first line.
class Ledger {
 public:
  explicit Ledger(std::filesystem::path path) : path_(std::move(path)) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger();

  // Nothing where the path is empty. Throws Error with kIo or kNotFound.
  void Append(const BadRecord& bad);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace shardpack::loader
