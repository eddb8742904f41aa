// Which samples are in a batch, and what they look like to the model, without training.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "libshard/pack/json_text.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/image.h"
#include "shardpack/loader/data_loader.h"
#include "tools/common/exit_status.h"
#include "tools/common/run_main.h"
#include "tools/shardpack/commands.h"

namespace shardpack::tools {
namespace {

using loader::Batch;
using loader::Order;
using loader::Permutation;
using loader::Shuffle;
using loader::Slice;
using loader::StepPlan;
using loader::Tail;

struct BatchOptions {
  std::string dataset, step = "0", shuffle = "global", tail = "pad", transform = "none", output = "uint8", save;
  std::uint64_t epoch = 0, seed = 0, consumed = 0;
  std::uint32_t world = 1, rank = 0, batch_size = 1;
  bool json = false;
};

struct StepRange {
  std::uint64_t first = 0, last = 0;  // both included
};

std::uint64_t ParseStep(std::string_view text) {
  std::uint64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw UsageError{"--step takes a number, a range A..B or all, not \"" + Escaped(text) + '"'};
  }
  return step;
}

StepRange ParseSteps(const std::string& text, std::uint64_t num_steps) {
  StepRange range{0, num_steps - 1};
  if (text == "all") return range;
  const std::size_t dots = text.find("..");
  range.first = ParseStep(std::string_view(text).substr(0, dots));
  range.last = dots == std::string::npos ? range.first : ParseStep(std::string_view(text).substr(dots + 2));
  if (range.first > range.last) throw UsageError{"--step " + text + " goes backwards"};
  if (range.last >= num_steps) {
    throw UsageError{"there is no step " + std::to_string(range.last) + ": the epoch has " + std::to_string(num_steps) +
                     " from here, counted from 0"};
  }
  return range;
}

StepPlan PlanOf(const BatchOptions& o, std::uint64_t num_samples) {
  if (o.rank >= o.world)
    throw UsageError{"--rank " + std::to_string(o.rank) + " is not below --world " + std::to_string(o.world)};
  if (o.consumed > num_samples) {
    throw UsageError{"--consumed " + std::to_string(o.consumed) + " is more than the " + std::to_string(num_samples) +
                     " samples"};
  }
  StepPlan plan;
  plan.num_samples = num_samples;
  plan.consumed = o.consumed;
  plan.world_size = o.world;
  plan.rank = o.rank;
  plan.batch_size = o.batch_size;
  plan.tail = o.tail == "drop" ? Tail::kDrop : o.tail == "exact" ? Tail::kExact : Tail::kPad;
  return plan;
}

void CheckAnyStep(const StepPlan& plan) {
  if (plan.num_steps() > 0) return;
  const std::uint64_t left = plan.num_samples - plan.consumed;
  if (left == 0) throw UsageError{"no step: of " + std::to_string(plan.num_samples) + " samples none is left"};
  throw UsageError{"no step: " + std::to_string(left) + " samples are fewer than one global batch of " +
                   std::to_string(std::uint64_t{plan.world_size} * plan.batch_size) + " (--tail drop)"};
}

// One epoch's samples by position, with the permutation made once.
class EpochOrder {
 public:
  EpochOrder(const BatchOptions& o, std::uint64_t num_samples) {
    if (o.shuffle == "global") permutation_.emplace(num_samples, o.seed, o.epoch);
  }
  std::uint64_t operator()(std::uint64_t position) const { return permutation_ ? (*permutation_)(position) : position; }

 private:
  std::optional<Permutation> permutation_;
};

struct Sample {
  std::uint64_t index = 0;
  std::int64_t label = 0;
  bool valid = true;
  std::string_view key;
};

std::vector<Sample> SamplesOf(const Dataset& dataset, const StepPlan& plan, const EpochOrder& order,
                              std::uint64_t step) {
  const Slice slice = plan.SliceOf(step);
  std::vector<Sample> samples(slice.size);
  for (std::uint32_t k = 0; k < slice.size; ++k) {
    Sample& sample = samples[k];
    sample.index = order(plan.PositionOf(slice, k));
    sample.label = dataset.Info(sample.index).label;
    sample.key = dataset.Key(sample.index);
    sample.valid = k < slice.num_valid;
  }
  return samples;
}

std::string JsonLine(const BatchOptions& o, const StepPlan& plan, std::uint64_t step,
                     const std::vector<Sample>& samples) {
  nlohmann::ordered_json line = {{"epoch", o.epoch},      {"step", step},   {"steps", plan.num_steps()},
                                 {"world_size", o.world}, {"rank", o.rank}, {"batch_size", o.batch_size}};
  line["samples"] = nlohmann::ordered_json::array();
  for (const Sample& sample : samples) {
    nlohmann::ordered_json entry = {{"index", sample.index}};
    PutBytes(entry, "key", sample.key);
    entry["label"] = sample.label;
    entry["valid"] = sample.valid;
    line["samples"].push_back(std::move(entry));
  }
  return line.dump() + '\n';
}

std::string Padded(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string Table(const BatchOptions& o, const StepPlan& plan, std::uint64_t step, const std::vector<Sample>& samples,
                  const std::vector<std::string>& classes) {
  std::string text = "epoch " + std::to_string(o.epoch) + ", step " + std::to_string(step) + " of " +
                     std::to_string(plan.num_steps()) + " (counted from 0), rank " + std::to_string(o.rank) + " of " +
                     std::to_string(o.world) + ", " + std::to_string(plan.SliceOf(step).num_valid) + " samples\n";
  text += "place       index  label  key\n";
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const Sample& sample = samples[k];
    text += Padded(std::to_string(k), 5) + Padded(std::to_string(sample.index), 12) +
            Padded(std::to_string(sample.label), 7) + "  " + Escaped(sample.key);
    const auto label = static_cast<std::uint64_t>(sample.label);
    if (label < classes.size()) text += "  (" + Escaped(classes[label]) + ")";
    text += sample.valid ? "\n" : "  padding\n";
  }
  return text;
}

// ---- --save: the loader's own batch

void SaveFile(const std::string& path, Bytes head, Bytes body) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) ThrowSystemError(errno, "create", path);
  for (Bytes part : {head, body})
    file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
  file.close();
  if (!file) throw Error(ErrorCode::kIo, "cannot write " + Escaped(path));
}

// NumPy's format 1.0: magic, version, length of the header, the header padded with spaces so that the data is
// 64-aligned.
std::string NpyHead(const loader::Field& field) {
  std::string head = std::string("{'descr': '") + (field.dtype == loader::DType::kFloat32 ? "<f4" : "|u1") +
                     "', 'fortran_order': False, 'shape': (";
  for (std::int64_t extent : field.shape) head += std::to_string(extent) + ", ";
  head += "), }";
  constexpr std::size_t kBefore = 10, kAlignment = 64;
  const std::size_t used = kBefore + head.size() + 1;
  head += std::string((kAlignment - used % kAlignment) % kAlignment, ' ') + '\n';
  std::string magic = "\x93NUMPY\x01";
  magic += '\0';
  magic += static_cast<char>(head.size() & 0xff);
  magic += static_cast<char>(head.size() >> 8);
  return magic + head;
}

std::size_t BytesOf(const loader::Field& field) {
  std::size_t bytes = loader::SizeOf(field.dtype);
  for (std::int64_t extent : field.shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

// A square of pictures, two grey pixels between them. Padding is dimmed to a quarter.
Image ContactSheet(const Batch& batch) {
  constexpr std::uint32_t kGap = 2;
  const auto& shape = batch.images().shape;
  const auto count = static_cast<std::uint32_t>(shape[0]), height = static_cast<std::uint32_t>(shape[1]),
             width = static_cast<std::uint32_t>(shape[2]);
  const auto columns = static_cast<std::uint32_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::uint32_t rows = (count + columns - 1) / columns;
  Image sheet;
  sheet.width = columns * (width + kGap) + kGap;
  sheet.height = rows * (height + kGap) + kGap;
  sheet.pixels.assign(std::size_t{sheet.width} * sheet.height * 3, 128);
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(batch.images().data);
  const auto* valid = reinterpret_cast<const bool*>(batch.valid().data);
  const std::size_t row_bytes = std::size_t{width} * 3;
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::size_t x = kGap + (k % columns) * std::size_t{width + kGap},
                      y = kGap + (k / columns) * std::size_t{height + kGap};
    for (std::uint32_t row = 0; row < height; ++row, pixels += row_bytes) {
      std::uint8_t* out = sheet.pixels.data() + ((y + row) * sheet.width + x) * 3;
      std::transform(pixels, pixels + row_bytes, out,
                     [dim = !valid[k]](std::uint8_t v) { return static_cast<std::uint8_t>(dim ? v / 4 : v); });
    }
  }
  return sheet;
}

loader::LoaderOptions LoaderOptionsOf(const BatchOptions& o, const StepPlan& plan, bool sheet) {
  loader::LoaderOptions options;
  options.batch_size = o.batch_size;
  options.world.rank = o.rank;
  options.world.size = o.world;
  options.seed = o.seed;
  options.shuffle = o.shuffle == "global" ? Shuffle::kGlobal : Shuffle::kNone;
  options.tail = plan.tail;
  options.transform = loader::TransformFromName(o.transform);
  if (!sheet && o.output == "float32") options.output = {loader::DType::kFloat32, loader::Layout::kNchw};
  options.prefetch_depth = 1;
  options.held_batches = 0;
  options.memory_bytes = 16ull << 30;
  options.warn = [](const std::string& line) { std::fprintf(stderr, "shardpack: %s\n", line.c_str()); };
  return options;
}

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void Save(const Dataset& dataset, const BatchOptions& o, const StepPlan& plan, std::uint64_t step) {
  const bool sheet = EndsWith(o.save, ".png");
  loader::DataLoader data_loader(dataset, LoaderOptionsOf(o, plan, sheet));
  loader::State start = data_loader.state();
  start.epoch = o.epoch;
  start.consumed = o.consumed + step * o.world * o.batch_size;
  data_loader.Restore(start);
  loader::EpochIterator steps = data_loader.Epoch(o.epoch);
  const Batch batch = steps.Next().value();
  if (sheet) {
    SaveFile(o.save, {}, EncodePng(ContactSheet(batch)));
  } else {
    SaveFile(o.save, AsBytes(NpyHead(batch.images())), Bytes(batch.images().data, BytesOf(batch.images())));
  }
}

void CheckSave(const BatchOptions& o, const StepRange& range) {
  if (o.save.empty()) return;
  if (!EndsWith(o.save, ".png") && !EndsWith(o.save, ".npy"))
    throw UsageError{"--save takes a name that ends in .png or .npy"};
  if (range.first != range.last) throw UsageError{"--save takes one --step"};
}

void RunBatch(const BatchOptions& o) {
  const Dataset dataset = Dataset::Open(o.dataset);
  const StepPlan plan = PlanOf(o, dataset.size());
  CheckAnyStep(plan);
  const StepRange range = ParseSteps(o.step, plan.num_steps());
  CheckSave(o, range);
  const EpochOrder order(o, dataset.size());
  for (std::uint64_t step = range.first; step <= range.last; ++step) {
    const auto samples = SamplesOf(dataset, plan, order, step);
    WriteOut(o.json ? JsonLine(o, plan, step, samples) : Table(o, plan, step, samples, dataset.manifest().classes));
  }
  if (!o.save.empty()) Save(dataset, o, plan, range.first);
}

}  // namespace

void AddBatch(CLI::App& app, int& status) {
  auto options = std::make_shared<BatchOptions>();
  BatchOptions& o = *options;
  CLI::App* command = app.add_subcommand("batch", "Show which samples a training step gets, without training");
  command->add_option("DATASET", o.dataset, "dataset or shard")->required();
  command->add_option("--epoch", o.epoch, "epoch, from 0")->capture_default_str();
  command->add_option("--step", o.step, "a step, from 0; A..B, both included; or all")->capture_default_str();
  command->add_option("--seed", o.seed, "seed of the run")->capture_default_str();
  command->add_option("--shuffle", o.shuffle, "order of the epoch")
      ->check(CLI::IsMember({"global", "none"}))
      ->capture_default_str();
  command->add_option("--world", o.world, "number of ranks")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--rank", o.rank, "the rank whose samples to show")->capture_default_str();
  command->add_option("--batch-size", o.batch_size, "samples a step and rank")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--tail", o.tail, "what becomes of a last step that is not full")
      ->check(CLI::IsMember({"pad", "drop", "exact"}))
      ->capture_default_str();
  command->add_option("--consumed", o.consumed, "position of a saved state; steps count from there")
      ->capture_default_str();
  command->add_option("--transform", o.transform, "for --save")
      ->check(CLI::IsMember({"train", "eval", "classic", "none"}))
      ->capture_default_str();
  command->add_option("--output", o.output, "for --save batch.npy")
      ->check(CLI::IsMember({"uint8", "float32"}))
      ->capture_default_str();
  command->add_option("--save", o.save, "batch.npy: the step's tensor; sheet.png: its pictures as the model sees them");
  command->add_flag("--json", o.json, "one JSON object a step");
  command->callback([options, &status] {
    RunBatch(*options);
    status = kDone;
  });
}

}  // namespace shardpack::tools
