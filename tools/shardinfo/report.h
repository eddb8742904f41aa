// shardinfo's output for people.
#pragma once

#include <string>

#include "tools/shardinfo/describe.h"

namespace shardpack::tools {

struct ReportOptions {
  bool classes = false;       // every class with its number of records
  bool histograms = false;    // of width and height
  bool layout = false;        // sections of each shard
  std::uint64_t records = 0;  // the first so many
};

std::string Report(const Dataset& dataset, const Description& description, const ReportOptions& options);

}  // namespace shardpack::tools
