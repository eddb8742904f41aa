// What the files of `shardpack batch` share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/dataset.h"
#include "shardpack/loader/order.h"

namespace shardpack::tools {

struct BatchOptions {
  std::string dataset, step = "0", shuffle = "global", tail = "pad", transform = "none", output = "uint8", save;
  std::uint64_t epoch = 0, seed = 0, consumed = 0;
  std::uint32_t world = 1, rank = 0, batch_size = 1;
  bool json = false;
};

struct Sample {
  std::uint64_t index = 0;
  std::int64_t label = 0;
  std::string label_text;  // JSON: of labels that are lists or fractions too
  bool valid = true;
  std::string_view key;
};

// A step as one line of JSON, respectively as a table; both end with a newline.
std::string JsonLine(const BatchOptions& options, const loader::StepPlan& plan, std::uint64_t step,
                     const std::vector<Sample>& samples);
std::string Table(const BatchOptions& options, const loader::StepPlan& plan, std::uint64_t step,
                  const std::vector<Sample>& samples, const std::vector<std::string>& classes);

// Whether `path` ends as one of the files SaveStep() knows to write.
bool IsSheet(const std::string& path);
bool IsTensor(const std::string& path);
// Writes the step's pictures, made by the loader, to options.save.
void SaveStep(const Dataset& dataset, const BatchOptions& options, const loader::StepPlan& plan, std::uint64_t step);

}  // namespace shardpack::tools
