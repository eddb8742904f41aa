// The command line of `shardpack convert` and `shardpack plan`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "shardpack/pack.h"
#include "tools/common/progress_bar.h"

namespace shardpack::tools {

// As typed; empty where not given.
struct ConvertArguments {
  std::vector<std::string> sources, include, exclude;
  std::string output, from = "auto", path_column = "path", label_column = "label", image_feature = "image/encoded",
                      label_feature = "image/class/label", order, split;
  std::string format = "record", hdf5_layout, images = "keep", chroma = "keep", resize, compression = "auto",
              dictionary = "auto", statistics = "none";
  std::string shard_size = "256MiB", classes, on_error = "skip", max_bad, verify_images = "decode", memory = "2GiB",
              progress = "auto", name, part;
  std::uint64_t shard_records = 0, limit = 0, max_pixels = ImageLimits{}.max_pixels;
  int threads = 0, quality = 90;
  bool overwrite = false, rescan = false, dry_run = false, json = false;
};

enum class ConvertUse { kConvert, kPlan };
void DeclareConvertOptions(CLI::App& command, ConvertArguments& arguments, ConvertUse use);

// One for each share of --split, else one. Throws UsageError, or Error for a list of classes that cannot be read.
std::vector<PackOptions> ToPackOptions(const CLI::App& command, const ConvertArguments& arguments);
ProgressStyle ParseProgressStyle(const std::string& text);

}  // namespace shardpack::tools
