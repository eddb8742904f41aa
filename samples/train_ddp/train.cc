#include "samples/train_ddp/train.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>
#include <vector>

#include "samples/train_ddp/batches.h"
#include "samples/train_ddp/device.h"
#include "samples/train_ddp/failure.h"
#include "samples/train_ddp/model.h"
#include "samples/train_ddp/process_group.h"
#include "samples/train_ddp/report.h"
#include "shardpack/loader/philox.h"
#include "shardpack/record.h"
#include "shardpack/threads.h"

namespace train_ddp {
namespace {

namespace loader = shardpack::loader;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kStepsBetweenPlanChecks = 100;
constexpr std::uint32_t kShiftOperation = 0x5348;  // Philox: apart from what the loader draws for the same sample

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void PrintLine(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string Exact(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// Everything that must be the same on all ranks though each read it from its own command line.
std::vector<std::pair<std::string, std::string>> OptionsByName(const Options& o) {
  const bool tested = !o.test.empty() || !o.raw_test.empty();
  return {{"--model", o.model},
          {"training on", o.from_raw() ? "raw files" : "a dataset"},
          {"test data", tested ? "yes" : "no"},
          {"--loader-only", o.loader_only ? "yes" : "no"},
          {"--epochs", std::to_string(o.num_epochs)},
          {"--batch-size", std::to_string(o.rank_batch)},
          {"--seed", std::to_string(o.seed)},
          {"transform", o.train_transform.Describe()},
          {"transform of test data", o.test_transform.Describe()},
          {"--shift", std::to_string(o.shift_pixels)},
          {"--dropout", Exact(o.dropout_share)},
          {"--optimizer", o.use_adam ? "adam" : "sgd"},
          {"--lr", Exact(o.base_learning_rate)},
          {"--log-steps", std::to_string(o.log_steps)}};
}

std::string SizeText(const loader::Transform& t) { return std::to_string(t.width) + "x" + std::to_string(t.height); }

class Trainer {
 public:
  Trainer(const Options& options, const Rendezvous& rendezvous);
  void Run();

 private:
  void RunEpochs();
  void OpenData(const loader::World& world);
  void CheckAgreement();
  void BuildModel();
  void PrintHeading() const;

  void LoadEpoch(std::uint64_t epoch);
  void TrainEpoch(std::uint64_t epoch, EpochFigures& figures);
  void RequireFinite(double loss) const;
  void Evaluate(EpochFigures& figures);
  at::Tensor TrainStep(const TrainBatch& batch, double learning_rate);
  double LearningRate(std::uint64_t step, std::uint64_t steps_per_epoch) const;

  at::Tensor ImagesOf(const TrainBatch& batch) const;
  at::Tensor Shifted(const at::Tensor& images, const at::Tensor& indices) const;
  at::Tensor ToDevice(const at::Tensor& tensor) const {
    return tensor.to(place_.device, tensor.scalar_type(), /*non_blocking=*/true);
  }
  void BroadcastBuffers();
  std::string ParametersDigest() const;

  Options options_;
  loader::World world_;
  Place place_;
  std::unique_ptr<BatchSource> train_, test_;
  std::optional<Group> group_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<c10d::Reducer> reducer_;
  std::uint64_t epoch_ = 0, steps_done_ = 0;
};

Trainer::Trainer(const Options& options, const Rendezvous& rendezvous) : options_(options), world_(rendezvous.world) {
  place_ = ChoosePlace(options.backend, world_);
  // Ranks of one machine share its cores; LibTorch by itself would take them all in each.
  at::set_num_threads(std::max(1, shardpack::AvailableThreads() / static_cast<int>(world_.local_size)));
  const std::chrono::milliseconds timeout(static_cast<std::int64_t>(options.timeout_seconds * 1000));
  group_.emplace(rendezvous, place_.backend, place_.device.is_cuda(), timeout, [this] { OpenData(world_); });
}

void Trainer::OpenData(const loader::World& world) {
  SourceOptions source;
  source.world = world;
  source.batch_size = options_.rank_batch;
  source.seed = options_.seed;
  source.transform = options_.train_transform;
  source.bytes = place_.device.is_cuda();
  source.threads = options_.threads;
  source.warn = [rank = world.rank](const std::string& line) {
    std::fprintf(stderr, "train_ddp: rank %u: warning: %s\n", rank, line.c_str());
  };
  const auto open = options_.from_raw() ? OpenRaw : OpenPacked;
  train_ = open(options_.from_raw() ? options_.raw : options_.data, source);
  const std::string& test = options_.from_raw() ? options_.raw_test : options_.test;
  if (test.empty() || options_.loader_only) return;
  source.shuffle = loader::Shuffle::kNone;
  source.tail = loader::Tail::kExact;
  source.transform = options_.test_transform;
  test_ = open(test, source);
  if (test_->classes() != train_->classes()) {
    throw std::runtime_error(test + ": its " + std::to_string(test_->classes().size()) + " classes are not the " +
                             std::to_string(train_->classes().size()) + " of the training data");
  }
  if (options_.model == "cnn" && SizeText(test_->transform()) != SizeText(train_->transform())) {
    throw std::runtime_error(test + ": its images have " + SizeText(test_->transform()) +
                             " pixels, those of the training data " + SizeText(train_->transform()) +
                             "; the cnn takes one size: choose a --transform");
  }
}

void Trainer::CheckAgreement() {
  for (const auto& [name, value] : OptionsByName(options_)) {
    group_->RequireEqual("the ranks were started with different options: " + name, value);
  }
  group_->RequireEqual("the ranks have different training data: digest", train_->digest());
  if (test_) group_->RequireEqual("the ranks have different test data: digest", test_->digest());
  group_->RequireEqual("the ranks plan different batches: digest", Hex(train_->PlanDigest(0, 0)));
}

void Trainer::BuildModel() {
  at::manual_seed(options_.seed);
  const loader::Transform& transform = train_->transform();
  model_ = std::make_unique<Model>(ModelOptions{options_.model, transform.width, transform.height,
                                                static_cast<std::int64_t>(train_->classes().size()),
                                                options_.dropout_share});
  const bool channels_last = place_.device.is_cuda();
  model_->ToDevice(place_.device, channels_last);
  const std::vector<at::Tensor> parameters = model_->Parameters();
  group_->Broadcast(parameters);
  BroadcastBuffers();
  // Dropout must differ between ranks, or they would drop the same places of different images.
  at::manual_seed(options_.seed + 0x9e3779b97f4a7c15ull * (world_.rank + 1));

  if (options_.model != "cnn" && !options_.learning_rate && !options_.use_adam) {
    options_.base_learning_rate *= static_cast<double>(world_.size) * options_.rank_batch / 256;
  }
  const double rate = options_.base_learning_rate;
  if (options_.use_adam) {
    optimizer_ = std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(rate));
  } else {
    optimizer_ = std::make_unique<torch::optim::SGD>(parameters,
                                                     torch::optim::SGDOptions(rate).momentum(0.9).weight_decay(1e-4));
  }
  reducer_ = group_->MakeReducer(parameters);
}

void Trainer::PrintHeading() const {
  std::string line = std::to_string(train_->num_samples()) + " samples in " + std::to_string(train_->classes().size()) +
                     " classes, " + std::to_string(world_.size) + (world_.size == 1 ? " rank" : " ranks") + " x " +
                     std::to_string(options_.rank_batch) + ", " +
                     (options_.loader_only ? "loading only" : options_.model + " on " + place_.device.str());
  if (world_.size > 1) line += ", " + place_.backend;
  PrintLine(line);
}

void Trainer::Run() {
  try {
    RunEpochs();
  } catch (const std::exception& error) {
    group_->Fail(error);
  }
}

void Trainer::RunEpochs() {
  CheckAgreement();
  const bool speaks = world_.rank == 0;
  if (speaks && !options_.json) PrintHeading();
  if (options_.loader_only) {
    for (epoch_ = 0; epoch_ < options_.num_epochs; ++epoch_) LoadEpoch(epoch_);
    return;
  }
  BuildModel();
  BusyMeter busy(place_.device);
  EpochFigures figures;
  for (epoch_ = 0; epoch_ < options_.num_epochs; ++epoch_) {
    figures = {};
    figures.epoch = epoch_;
    busy.Take();
    TrainEpoch(epoch_, figures);
    figures.gpu_busy_percent = busy.Take();
    BroadcastBuffers();  // local batch norm: the running statistics of rank 0 are the model's
    if (test_) Evaluate(figures);
    figures.parameters_digest = ParametersDigest();
    group_->RequireEqual("the ranks' parameters differ after epoch " + std::to_string(epoch_) + ": digest",
                         figures.parameters_digest);
    if (speaks) PrintLine(options_.json ? ToJson(figures) : ToLine(figures, options_.num_epochs));
  }
  if (speaks && !options_.json) {
    char line[64];
    std::snprintf(line, sizeof line, "%saccuracy %.1f %%", figures.test_accuracy ? "" : "training ",
                  100 * figures.accuracy());
    PrintLine(line);
  }
  group_->Barrier();  // rank 0 serves the store: it goes last
}

void Trainer::LoadEpoch(std::uint64_t epoch) {
  group_->Barrier();
  const auto start = Clock::now();
  train_->StartEpoch(epoch);
  double samples = 0;
  for (TrainBatch batch; train_->Next(batch);) samples += batch.valid.sum().item<double>();
  const double seconds = SecondsSince(start);
  const auto sums = group_->Sum({samples, seconds});
  const LoadingFigures figures{epoch, static_cast<std::uint64_t>(sums[0]), sums[1] / world_.size};
  if (world_.rank == 0) PrintLine(options_.json ? ToJson(figures) : ToLine(figures, options_.num_epochs));
}

// Linear warm-up over a twentieth of the run (five epochs at most), then half a cosine down to nothing.
double Trainer::LearningRate(std::uint64_t step, std::uint64_t steps_per_epoch) const {
  const double total = static_cast<double>(steps_per_epoch) * options_.num_epochs;
  const double warm_up = std::min(total / 20, 5.0 * static_cast<double>(steps_per_epoch));
  const double at = static_cast<double>(step);
  if (at < warm_up) return options_.base_learning_rate * (at + 1) / (warm_up + 1);
  return options_.base_learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * (at - warm_up) / (total - warm_up)));
}

// Bytes become floats on the device by the very arithmetic of the loader's table: (v / 255 - mean) / deviation.
at::Tensor Trainer::ImagesOf(const TrainBatch& batch) const {
  at::Tensor images = ToDevice(batch.images);
  if (images.scalar_type() != at::kByte) return images;
  const loader::Transform& t = train_->transform();
  const auto options = images.options().dtype(at::kFloat);
  const at::Tensor mean = at::tensor(at::ArrayRef<float>(t.mean), options).view({1, 3, 1, 1});
  const at::Tensor deviation = at::tensor(at::ArrayRef<float>(t.deviation), options).view({1, 3, 1, 1});
  return images.to(at::kFloat).div_(255).sub_(mean).div_(deviation);
}

// Each image moved by its own draw, its edge repeated: a shift a loader's transform does not have, drawn as one would
// be, by sample and epoch, so that it is the same on any rank.
at::Tensor Trainer::Shifted(const at::Tensor& images, const at::Tensor& indices) const {
  const std::int64_t batch = images.size(0), height = images.size(2), width = images.size(3);
  const std::int64_t reach = options_.shift_pixels;
  at::Tensor shifts = at::zeros({2, batch, 1}, at::kLong);
  auto drawn = shifts.accessor<std::int64_t, 3>();
  for (std::int64_t k = 0; k < batch; ++k) {
    loader::Philox random(options_.seed, epoch_, static_cast<std::uint64_t>(indices.data_ptr<std::int64_t>()[k]),
                          kShiftOperation);
    for (int axis = 0; axis < 2; ++axis)
      drawn[axis][k][0] = static_cast<std::int64_t>(random.Below(2 * options_.shift_pixels + 1)) - reach;
  }
  shifts = ToDevice(shifts);
  const auto options = shifts.options();
  const at::Tensor rows = at::clamp(at::arange(height, options) + shifts[0], 0, height - 1).view({batch, height, 1});
  const at::Tensor columns = at::clamp(at::arange(width, options) + shifts[1], 0, width - 1).view({batch, 1, width});
  const at::Tensor samples = at::arange(batch, options).view({batch, 1, 1});
  return images.permute({0, 2, 3, 1})
      .index({samples, rows, columns})
      .permute({0, 3, 1, 2})
      .contiguous(images.suggest_memory_format());
}

// Returns {sum of losses, number right, number valid} of this rank's valid samples, on the device.
at::Tensor Trainer::TrainStep(const TrainBatch& batch, double learning_rate) {
  at::Tensor images = ImagesOf(batch);
  if (options_.shift_pixels > 0) images = Shifted(images, batch.indices);
  const at::Tensor labels = ToDevice(batch.labels), valid = ToDevice(batch.valid);

  optimizer_->zero_grad();
  if (reducer_) reducer_->prepare_for_forward();
  const at::Tensor scores = model_->Forward(images);
  const at::Tensor losses = at::cross_entropy_loss(scores, labels, {}, at::Reduction::None);
  // A padded place gives nothing, not even where its loss is not a number.
  const at::Tensor loss_sum = at::where(valid, losses, at::zeros_like(losses)).sum();
  // The reducer takes the mean over the ranks; what is wanted is the mean over the valid samples of all of them.
  const at::Tensor loss = loss_sum * (static_cast<double>(world_.size) / static_cast<double>(batch.global_valid));
  if (reducer_) reducer_->prepare_for_backward({scores});
  loss.backward();
  for (auto& group : optimizer_->param_groups()) group.options().set_lr(learning_rate);
  optimizer_->step();

  at::NoGradGuard no_grad;
  const at::Tensor right = (scores.argmax(1) == labels).logical_and(valid).sum();
  return at::stack({loss_sum.to(at::kDouble), right.to(at::kDouble), valid.sum().to(at::kDouble)});
}

void Trainer::TrainEpoch(std::uint64_t epoch, EpochFigures& figures) {
  model_->SetTraining(true);
  group_->Barrier();
  const auto start = Clock::now();
  const std::uint64_t steps = train_->StartEpoch(epoch);
  at::Tensor sums = at::zeros({3}, at::TensorOptions().dtype(at::kDouble).device(place_.device));
  double waited = 0;
  TrainBatch batch;
  for (std::uint64_t step = 0;; ++step) {
    if (step % kStepsBetweenPlanChecks == 0 && step < steps) {
      group_->RequireEqual("the ranks plan different batches at step " + std::to_string(step) + ": digest",
                           Hex(train_->PlanDigest(epoch, step)));
      RequireFinite(sums[0].item<double>());
    }
    const auto asked = Clock::now();
    const bool more = train_->Next(batch);
    waited += SecondsSince(asked);
    if (!more) break;
    const at::Tensor step_sums = TrainStep(batch, LearningRate(steps_done_, steps));
    sums += step_sums;
    if (options_.log_steps > 0 && steps_done_ % options_.log_steps == 0) {
      const auto all = group_->Sum({step_sums[0].item<double>(), step_sums[2].item<double>()});
      if (world_.rank == 0) {
        std::fprintf(stderr, "step %llu loss %.9g valid %.0f\n", static_cast<unsigned long long>(steps_done_),
                     all[0] / all[1], all[1]);
      }
    }
    ++steps_done_;
  }
  const at::Tensor own = sums.cpu();  // waits for the device
  const double seconds = SecondsSince(start);
  const double* values = own.data_ptr<double>();
  const auto all = group_->Sum(
      {values[0], values[1], values[2], waited, seconds, double(train_->substituted()), double(train_->masked())});
  RequireFinite(all[0]);
  figures.loss = all[0] / all[2];
  figures.train_accuracy = all[1] / all[2];
  figures.samples = static_cast<std::uint64_t>(all[2]);
  figures.seconds = all[4] / world_.size;
  figures.consumer_wait_percent = 100 * all[3] / all[4];
  figures.substituted = static_cast<std::uint64_t>(all[5]);
  figures.masked = static_cast<std::uint64_t>(all[6]);
}

void Trainer::RequireFinite(double loss) const {
  if (std::isfinite(loss)) return;
  throw std::runtime_error("the loss is not a finite number any more in epoch " + std::to_string(epoch_ + 1) + "/" +
                           std::to_string(options_.num_epochs) + ": a lower --lr may help");
}

void Trainer::Evaluate(EpochFigures& figures) {
  at::NoGradGuard no_grad;
  model_->SetTraining(false);
  const auto start = Clock::now();
  test_->StartEpoch(0);
  at::Tensor sums = at::zeros({2}, at::TensorOptions().dtype(at::kLong).device(place_.device));
  for (TrainBatch batch; test_->Next(batch);) {
    const at::Tensor labels = ToDevice(batch.labels), valid = ToDevice(batch.valid);
    const at::Tensor right = (model_->Forward(ImagesOf(batch)).argmax(1) == labels).logical_and(valid);
    sums += at::stack({right.sum(), valid.sum()});
  }
  const at::Tensor own = sums.cpu();
  const auto all = group_->Sum({own[0].item<double>(), own[1].item<double>(), double(test_->masked())});
  figures.evaluation_seconds = SecondsSince(start);
  figures.evaluated = static_cast<std::uint64_t>(all[1]);
  figures.masked += static_cast<std::uint64_t>(all[2]);
  if (all[1] == 0) throw std::runtime_error("no test sample could be read");
  figures.test_accuracy = all[0] / all[1];
}

void Trainer::BroadcastBuffers() {
  at::NoGradGuard no_grad;
  group_->Broadcast(model_->Buffers());
}

std::string Trainer::ParametersDigest() const {
  std::vector<std::byte> bytes;
  auto tensors = model_->Parameters();
  for (const at::Tensor& buffer : model_->Buffers()) tensors.push_back(buffer);
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    const auto* data = static_cast<const std::byte*>(plain.const_data_ptr());
    bytes.insert(bytes.end(), data, data + plain.nbytes());
  }
  return shardpack::Xxh3_128(bytes).Hex();
}

}  // namespace

void Run(const Options& options, const Rendezvous& rendezvous) {
  auto trainer = std::make_unique<Trainer>(options, rendezvous);
  try {
    trainer->Run();
  } catch (...) {
    // No destructors after a failure: a process group whose peer died may wait for it in its own.
    static_cast<void>(trainer.release());
    throw;
  }
}

}  // namespace train_ddp
