// The command line of `shardpack convert`.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "shardpack/pack.h"
#include "tools/common/progress_bar.h"

namespace shardpack::tools {

// As typed; empty where not given.
struct ConvertArguments {
  std::vector<std::string> sources;
  std::string output, from = "auto", format = "record", images = "keep";
  std::string shard_size = "256MiB", classes, on_error = "skip", max_bad, verify_images = "decode", memory = "2GiB",
              progress = "auto", name;
  std::uint64_t shard_records = 0, max_pixels = ImageLimits{}.max_pixels;
  int threads = 0;
  bool overwrite = false, dry_run = false, json = false;
  // Documented options of which this version knows one value only: name -> as typed.
  std::map<std::string, std::string> single_valued;
};

void DeclareConvertOptions(CLI::App& command, ConvertArguments& arguments);

// Throws UsageError, or Error for a list of classes that cannot be read.
PackOptions ToPackOptions(const CLI::App& command, const ConvertArguments& arguments);
ProgressStyle ParseProgressStyle(const std::string& text);

}  // namespace shardpack::tools
