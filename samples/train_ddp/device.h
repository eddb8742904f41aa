// Which device a rank trains on, and how busy that is.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <string>

#include "shardpack/loader/world.h"

namespace train_ddp {

struct Place {
  c10::Device device = c10::Device(c10::kCPU);
  std::string backend = "gloo";  // of the process group
};

// `backend` is auto, gloo or nccl. auto takes NCCL where each rank of this machine has a device of its own. Makes the
// device current. Throws where NCCL was asked for and cannot be.
Place ChoosePlace(const std::string& backend, const shardpack::loader::World& world);

// Asks NVIDIA's management library a few times a second how busy the device was, as nvidia-smi shows it.
class BusyMeter {
 public:
  explicit BusyMeter(const c10::Device& device);
  ~BusyMeter();
  // Percent, mean since the last call; nullopt without a device or without the library.
  std::optional<double> Take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace train_ddp
