// Where the training loop's batches come from: a packed dataset through the loader, or class folders read the plain
// way.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shardpack/loader/order.h"
#include "shardpack/loader/transform.h"
#include "shardpack/loader/world.h"

namespace train_ddp {

struct TrainBatch {
  at::Tensor images;               // [B, 3, H, W]: normalised floats, or bytes where SourceOptions::bytes
  at::Tensor labels;               // int64 [B]
  at::Tensor valid;                // bool [B]
  at::Tensor indices;              // int64 [B]
  std::uint64_t global_valid = 0;  // of all ranks in this step
};

struct SourceOptions {
  shardpack::loader::World world;
  std::uint32_t batch_size = 1;
  std::uint64_t seed = 0;
  shardpack::loader::Shuffle shuffle = shardpack::loader::Shuffle::kGlobal;
  shardpack::loader::Tail tail = shardpack::loader::Tail::kPad;
  shardpack::loader::Transform transform;
  bool bytes = false;  // uint8, to be normalised on the device
  int threads = 0;     // of the loader
  std::function<void(const std::string&)> warn;
};

// One consumer.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  virtual std::uint64_t num_samples() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;
  virtual std::string digest() const = 0;  // 32 hex digits: equal on ranks that see the same data
  virtual const shardpack::loader::Transform& transform() const = 0;  // with the size filled in

  virtual std::uint64_t StartEpoch(std::uint64_t epoch) = 0;  // number of steps, the same on every rank
  // Replaces `batch`; false at the epoch's end.
  virtual bool Next(TrainBatch& batch) = 0;
  // Of what all ranks do in a step of an epoch: to be compared among them.
  virtual std::uint64_t PlanDigest(std::uint64_t epoch, std::uint64_t step) const = 0;

  // Of the epoch so far, on this rank.
  virtual std::uint64_t substituted() const { return 0; }
  virtual std::uint64_t masked() const { return 0; }
};

std::unique_ptr<BatchSource> OpenPacked(const std::filesystem::path& dataset, const SourceOptions& options);
std::unique_ptr<BatchSource> OpenRaw(const std::filesystem::path& folder, const SourceOptions& options);

}  // namespace train_ddp
