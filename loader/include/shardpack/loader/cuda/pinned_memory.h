// Page-locked memory for the loader's slots, where batches are copied to a device without LibTorch.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "shardpack/loader/batch.h"

namespace shardpack::loader {

// Pinned memory where a device is there, ordinary memory where it is not or where the driver refuses to lock more;
// `warn` (may be empty) is told once of a refusal. Freeing does not wait for a copy: keep a batch until the copy that
// reads it is done. (Tensors want TorchHostMemory(), which does wait.) Thread-safe.
std::shared_ptr<BatchAllocator> PinnedMemory(std::function<void(const std::string&)> warn = {});

}  // namespace shardpack::loader
