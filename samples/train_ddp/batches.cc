#include "samples/train_ddp/batches.h"

#include <ATen/ops/empty.h>

#include <optional>
#include <utility>

#include "samples/train_ddp/raw_images.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/loader/data_loader.h"
#include "shardpack/loader/torch/tensors.h"

namespace train_ddp {
namespace {

namespace loader = shardpack::loader;

class PackedSource : public BatchSource {
 public:
  PackedSource(const std::filesystem::path& path, const SourceOptions& o)
      : loader_(shardpack::Dataset::Open(path), LoaderOptionsOf(o)) {
    const auto refuse = [&](const char* why) {
      throw shardpack::Error(shardpack::ErrorCode::kInvalidArgument, {path.string(), {}, {}}, why);
    };
    if (loader_.dataset().manifest().label_kind != shardpack::LabelKind::kClass) refuse("its labels are not classes");
    if (num_samples() == 0) refuse("it has no samples");
  }

  std::uint64_t num_samples() const override { return loader_.dataset().size(); }
  const std::vector<std::string>& classes() const override { return loader_.dataset().manifest().classes; }
  std::string digest() const override { return loader_.dataset().digest().Hex(); }
  const loader::Transform& transform() const override { return loader_.options().transform; }

  std::uint64_t StartEpoch(std::uint64_t epoch) override {
    iterator_.reset();  // the last epoch's ring goes before the next one's comes
    iterator_.emplace(loader_.Epoch(epoch));
    return iterator_->num_steps();
  }

  bool Next(TrainBatch& out) override {
    out = {};  // gives the slot back before waiting for the next
    const std::optional<loader::Batch> batch = iterator_->Next();
    if (!batch) return false;
    loader::TensorBatch tensors = loader::TensorsOf(*batch);
    RequireClasses(tensors);
    out = {std::move(tensors.images), std::move(tensors.labels), std::move(tensors.valid), std::move(tensors.indices),
           batch->global_valid()};
    return true;
  }

  std::uint64_t PlanDigest(std::uint64_t epoch, std::uint64_t step) const override {
    return loader::StepDigest(digest(), loader_.order(), loader_.PlanOf(0), epoch, step);
  }
  std::uint64_t substituted() const override { return iterator_ ? iterator_->report().substituted : 0; }
  std::uint64_t masked() const override { return iterator_ ? iterator_->report().masked : 0; }

 private:
  // Of padding too: on a device a wrong one ends the process in words of the driver.
  void RequireClasses(const loader::TensorBatch& batch) const {
    const auto count = static_cast<std::int64_t>(classes().size());
    const auto* labels = batch.labels.const_data_ptr<std::int64_t>();
    for (std::int64_t k = 0; k < batch.labels.numel(); ++k) {
      if (labels[k] >= 0 && labels[k] < count) continue;
      throw shardpack::Error(shardpack::ErrorCode::kCorruption, {loader_.dataset().folder().string(), {}, {}},
                             "sample " + std::to_string(batch.indices.const_data_ptr<std::int64_t>()[k]) +
                                 " has label " + std::to_string(labels[k]) + ", but there are " +
                                 std::to_string(count) + " classes");
    }
  }

  static loader::LoaderOptions LoaderOptionsOf(const SourceOptions& o) {
    loader::LoaderOptions options;
    options.batch_size = o.batch_size;
    options.world = o.world;
    options.seed = o.seed;
    options.shuffle = o.shuffle;
    options.tail = o.tail;
    options.transform = o.transform;
    options.output = o.bytes ? loader::OutputOptions{loader::DType::kUint8, loader::Layout::kNhwc}
                             : loader::OutputOptions{loader::DType::kFloat32, loader::Layout::kNchw};
    options.threads = o.threads;
    options.allocator = loader::TorchHostMemory(o.warn);
    options.warn = o.warn;
    return options;
  }

  loader::DataLoader loader_;
  std::optional<loader::EpochIterator> iterator_;
};

// The same samples in the same order as the packed source, one after another in the thread that asks.
class RawSource : public BatchSource {
 public:
  RawSource(const std::filesystem::path& folder, const SourceOptions& o) : options_(o), images_(folder, o.transform) {
    order_ = {images_.size(), o.shuffle, o.seed};
    plan_.num_samples = images_.size();
    plan_.world_size = o.world.size;
    plan_.rank = o.world.rank;
    plan_.batch_size = o.batch_size;
    plan_.tail = o.tail;
  }

  std::uint64_t num_samples() const override { return images_.size(); }
  const std::vector<std::string>& classes() const override { return images_.classes(); }
  std::string digest() const override { return images_.Digest(); }
  const loader::Transform& transform() const override { return images_.transform(); }

  std::uint64_t StartEpoch(std::uint64_t epoch) override {
    epoch_ = epoch;
    step_ = 0;
    permutation_.emplace(images_.size(), options_.seed, epoch);
    return plan_.num_steps();
  }

  bool Next(TrainBatch& out) override {
    if (step_ == plan_.num_steps()) return false;
    const std::int64_t size = options_.batch_size, width = transform().width, height = transform().height;
    out.images = options_.bytes ? at::empty({size, height, width, 3}, at::kByte)
                                : at::empty({size, 3, height, width}, at::kFloat);
    out.labels = at::empty({size}, at::kLong);
    out.valid = at::empty({size}, at::kBool);
    out.indices = at::empty({size}, at::kLong);
    out.global_valid = plan_.GlobalValid(step_);
    const loader::Slice slice = plan_.SliceOf(step_++);
    for (std::uint32_t k = 0; k < slice.size; ++k) Fill(slice, k, out);
    if (options_.bytes) out.images = out.images.permute({0, 3, 1, 2});
    return true;
  }

  std::uint64_t PlanDigest(std::uint64_t epoch, std::uint64_t step) const override {
    return loader::StepDigest(digest(), order_, plan_, epoch, step);
  }

 private:
  void Fill(const loader::Slice& slice, std::uint32_t k, TrainBatch& out) {
    const std::uint64_t position = plan_.PositionOf(slice, k);
    const std::uint64_t sample = order_.shuffle == loader::Shuffle::kGlobal ? (*permutation_)(position) : position;
    const std::size_t bytes = std::size_t{3} * transform().width * transform().height;
    out.labels.data_ptr<std::int64_t>()[k] = images_.label(sample);
    out.indices.data_ptr<std::int64_t>()[k] = static_cast<std::int64_t>(sample);
    out.valid.data_ptr<bool>()[k] = k < slice.num_valid;
    if (options_.bytes) {
      images_.Load(sample, options_.seed, epoch_, out.images.data_ptr<std::uint8_t>() + k * bytes);
    } else {
      images_.Load(sample, options_.seed, epoch_, out.images.data_ptr<float>() + k * bytes);
    }
  }

  SourceOptions options_;
  RawImages images_;
  loader::Order order_;
  loader::StepPlan plan_;
  std::optional<loader::Permutation> permutation_;
  std::uint64_t epoch_ = 0, step_ = 0;
};

}  // namespace

std::unique_ptr<BatchSource> OpenPacked(const std::filesystem::path& dataset, const SourceOptions& options) {
  return std::make_unique<PackedSource>(dataset, options);
}

std::unique_ptr<BatchSource> OpenRaw(const std::filesystem::path& folder, const SourceOptions& options) {
  return std::make_unique<RawSource>(folder, options);
}

}  // namespace train_ddp
