#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>

#include <atomic>
#include <utility>

#include "shardpack/loader/torch/tensors.h"

namespace shardpack::loader {
namespace {

// Only the hooks in libtorch_cpu are called here: they find CUDA when libtorch_cuda is loaded too, and say no
// elsewhere.
class PinnedTorchMemory : public BatchAllocator {
 public:
  explicit PinnedTorchMemory(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
    if (!refused_) {
      try {
        auto data = std::make_shared<at::DataPtr>(at::getHostAllocator(at::kCUDA)->allocate(bytes));
        return {data, static_cast<std::byte*>(data->get())};
      } catch (const std::exception& error) {
        Refuse(error.what());
      }
    }
    return ordinary_->Allocate(bytes);
  }
  bool pinned() const override { return !refused_; }

 private:
  void Refuse(const std::string& reason) {
    if (refused_.exchange(true) || !warn_) return;
    // LibTorch's messages carry a C++ stack below their first line.
    warn_("pinned memory was refused (" + reason.substr(0, reason.find('\n')) + "); ordinary memory is used");
  }

  std::function<void(const std::string&)> warn_;
  std::atomic<bool> refused_{false};
  std::shared_ptr<BatchAllocator> ordinary_ = OrdinaryMemory();
};

}  // namespace

std::shared_ptr<BatchAllocator> TorchHostMemory(std::function<void(const std::string&)> warn) {
  if (!at::globalContext().hasCUDA()) return OrdinaryMemory();
  return std::make_shared<PinnedTorchMemory>(std::move(warn));
}

}  // namespace shardpack::loader
