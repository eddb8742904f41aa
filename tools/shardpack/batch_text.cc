// A step's samples as text.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "libshard/pack/json_text.h"
#include "shardpack/error.h"
#include "tools/shardpack/batch.h"

namespace shardpack::tools {
namespace {

std::string Padded(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

}  // namespace

std::string JsonLine(const BatchOptions& o, const loader::StepPlan& plan, std::uint64_t step,
                     const std::vector<Sample>& samples) {
  nlohmann::ordered_json line = {{"epoch", o.epoch},      {"step", step},   {"steps", plan.num_steps()},
                                 {"world_size", o.world}, {"rank", o.rank}, {"batch_size", o.batch_size}};
  line["samples"] = nlohmann::ordered_json::array();
  for (const Sample& sample : samples) {
    nlohmann::ordered_json entry = {{"index", sample.index}};
    PutBytes(entry, "key", sample.key);
    entry["label"] = nlohmann::ordered_json::parse(sample.label_text);
    entry["valid"] = sample.valid;
    line["samples"].push_back(std::move(entry));
  }
  return line.dump() + '\n';
}

std::string Table(const BatchOptions& o, const loader::StepPlan& plan, std::uint64_t step,
                  const std::vector<Sample>& samples, const std::vector<std::string>& classes) {
  std::string text = "epoch " + std::to_string(o.epoch) + ", step " + std::to_string(step) + " of " +
                     std::to_string(plan.num_steps()) + " (counted from 0), rank " + std::to_string(o.rank) + " of " +
                     std::to_string(o.world) + ", " + std::to_string(plan.SliceOf(step).num_valid) + " samples\n";
  text += "place       index  label  key\n";
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const Sample& sample = samples[k];
    text += Padded(std::to_string(k), 5) + Padded(std::to_string(sample.index), 12) + Padded(sample.label_text, 7) +
            "  " + Escaped(sample.key);
    const auto label = static_cast<std::uint64_t>(sample.label);
    if (label < classes.size()) text += "  (" + Escaped(classes[label]) + ")";
    text += sample.valid ? "\n" : "  padding\n";
  }
  return text;
}

}  // namespace shardpack::tools
