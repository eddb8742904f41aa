// Batches of bytes normalised on the device.
#pragma once

#include <memory>

#include "shardpack/loader/cuda/pixel_math.h"

namespace shardpack::loader {

// Number of CUDA devices this process may use; 0 where there is no driver. Never throws.
int NumCudaDevices() noexcept;

// Holds the table on the device that was current when it was made. Any thread may call the const members. Throws Error
// with kUnsupported where CUDA refuses: no device, not enough memory.
class DeviceNormaliser {
 public:
  explicit DeviceNormaliser(const NormaliseTable& table);
  DeviceNormaliser(DeviceNormaliser&&) noexcept;
  DeviceNormaliser& operator=(DeviceNormaliser&&) noexcept;
  ~DeviceNormaliser();

  // Puts the job on `stream` (a cudaStream_t) and returns at once; its pointers are the device's and must live until
  // the stream is done with it. The result is bit for bit NormaliseOnCpu()'s.
  void Launch(const NormaliseJob& job, void* stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack::loader
