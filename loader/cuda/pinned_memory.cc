#include "shardpack/loader/cuda/pinned_memory.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <utility>

#include "shardpack/loader/cuda/normalise.h"

namespace shardpack::loader {
namespace {

class PinnedAllocator : public BatchAllocator {
 public:
  explicit PinnedAllocator(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (!refused_) {
      // Portable: pinned for every device of the process, not only the current one. CUDA gives pages, so 64 is kept.
      const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
      if (status == cudaSuccess) return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFreeHost(p); }};
      cudaGetLastError();  // or the next call of an innocent would report it
      if (!refused_.exchange(true) && warn_) {
        warn_(std::string("pinned memory was refused (") + cudaGetErrorString(status) + "); ordinary memory is used");
      }
    }
    return ordinary_->Allocate(bytes);
  }
  bool pinned() const override { return !refused_; }

 private:
  std::function<void(const std::string&)> warn_;
  std::atomic<bool> refused_{false};
  std::shared_ptr<BatchAllocator> ordinary_ = OrdinaryMemory();
};

}  // namespace

std::shared_ptr<BatchAllocator> PinnedMemory(std::function<void(const std::string&)> warn) {
  if (NumCudaDevices() == 0) return OrdinaryMemory();
  return std::make_shared<PinnedAllocator>(std::move(warn));
}

}  // namespace shardpack::loader
