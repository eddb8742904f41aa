// Batches as LibTorch tensors, without a copy.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "shardpack/loader/batch.h"

namespace shardpack::loader {

// A tensor over a field of `batch`. It keeps the batch's slot from being reused while it, or any view of its storage,
// lives. Pictures in NHWC (Field::layout) come as a logical [B, C, H, W] tensor with channels-last strides. Do not
// write to it after the batch was shared.
at::Tensor TensorOf(const Batch& batch, const Field& field);

struct TensorBatch {
  at::Tensor images;   // [B, C, H, W]
  at::Tensor labels;   // int64 [B]; undefined where the batch has no such field (batch.h)
  at::Tensor valid;    // bool [B]
  at::Tensor indices;  // int64 [B]
};
TensorBatch TensorsOf(const Batch& batch);

// Memory from LibTorch's own pinned host allocator where a CUDA device is there, so that a non-blocking copy of it is
// waited for before its reuse; ordinary memory elsewhere. `warn` (may be empty) is told once, from whichever thread
// asked for memory, when a device is there but pinning was refused. Thread-safe.
std::shared_ptr<BatchAllocator> TorchHostMemory(std::function<void(const std::string&)> warn = {});

}  // namespace shardpack::loader
