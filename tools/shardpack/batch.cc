// Which samples are in a batch, and what they look like to the model, without training.
#include "tools/shardpack/batch.h"

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/label.h"
#include "tools/common/exit_status.h"
#include "tools/common/run_main.h"
#include "tools/common/validators.h"
#include "tools/shardpack/commands.h"

namespace shardpack::tools {
namespace {

using loader::Permutation;
using loader::Slice;
using loader::StepPlan;
using loader::Tail;

constexpr char kFooter[] =
    R"(Steps, ranks and places count from 0. Reads the index alone, and the images only under --save.

Examples:
  shardpack batch packed --epoch 3 --step 17 --batch-size 256 --world 8 --rank 2
  shardpack batch packed --step all --tail drop --batch-size 256 --json | jq -r '.samples[].key'
  shardpack batch packed --batch-size 64 --transform train --save sheet.png)";

constexpr std::uint64_t kMostRanks = 1u << 24, kMostSamples = 1u << 20;  // samples of a batch

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

std::vector<Sample> SamplesOf(const Dataset& dataset, const StepPlan& plan, const EpochOrder& order,
                              std::uint64_t step) {
  const Slice slice = plan.SliceOf(step);
  std::vector<Sample> samples(slice.size);
  for (std::uint32_t k = 0; k < slice.size; ++k) {
    Sample& sample = samples[k];
    sample.index = order(plan.PositionOf(slice, k));
    sample.label = dataset.Info(sample.index).label;
    sample.label_text = LabelText(dataset, sample.index);
    sample.key = dataset.Key(sample.index);
    sample.valid = k < slice.num_valid;
  }
  return samples;
}

void CheckSave(const BatchOptions& o, const StepRange& range) {
  if (o.save.empty()) return;
  if (!IsSheet(o.save) && !IsTensor(o.save)) throw UsageError{"--save takes a name that ends in .png or .npy"};
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
  if (!o.save.empty()) SaveStep(dataset, o, plan, range.first);
}

}  // namespace

void AddBatch(CLI::App& app, int& status) {
  auto options = std::make_shared<BatchOptions>();
  BatchOptions& o = *options;
  CLI::App* command = app.add_subcommand("batch", "Show which samples a training step gets, without training");
  command->footer(kFooter);
  AddDatasetOption(*command, o.dataset);
  command->add_option("--epoch", o.epoch, "Epoch, from 0")
      ->check(WholeNumber(0))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--step", o.step, "A step, from 0; A..B, both included; or all")
      ->type_name("K|A..B|all")
      ->capture_default_str();
  command->add_option("--seed", o.seed, "Seed of the run")
      ->check(WholeNumber(0))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--shuffle", o.shuffle, "Order of the epoch")
      ->check(OneOf({"global", "none"}))
      ->type_name("global|none")
      ->capture_default_str();
  command->add_option("--world", o.world, "Number of ranks")
      ->check(WholeNumber(1, kMostRanks))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--rank", o.rank, "The rank whose samples to show")
      ->check(WholeNumber(0, kMostRanks))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--batch-size", o.batch_size, "Samples a step and rank")
      ->check(WholeNumber(1, kMostSamples))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--tail", o.tail, "What becomes of a last step that is not full")
      ->check(OneOf({"pad", "drop", "exact"}))
      ->type_name("pad|drop|exact")
      ->capture_default_str();
  command->add_option("--consumed", o.consumed, "Position of a saved state; steps count from there")
      ->check(WholeNumber(0))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--transform", o.transform, "How --save prepares the pictures")
      ->check(OneOf({"train", "eval", "classic", "none"}))
      ->type_name("train|eval|classic|none")
      ->capture_default_str();
  command->add_option("--output", o.output, "Of the tensor of --save batch.npy")
      ->check(OneOf({"uint8", "float32"}))
      ->type_name("uint8|float32")
      ->capture_default_str();
  command->add_option("--save", o.save, "batch.npy: the step's tensor; sheet.png: its pictures as the model sees them")
      ->type_name("FILE");
  command->add_flag("--json", o.json, "One JSON object a step");
  command->callback([options, &status] {
    RunBatch(*options);
    status = kDone;
  });
}

}  // namespace shardpack::tools
