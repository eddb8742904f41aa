#include "samples/train_ddp/device.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#ifdef USE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>
#endif

namespace train_ddp {
namespace {

#ifdef USE_C10D_NCCL
constexpr bool kHaveNccl = true;
#else
constexpr bool kHaveNccl = false;
#endif

// CUDA's own name of the device, which NVML knows too: CUDA_VISIBLE_DEVICES renumbers for CUDA alone.
std::string PciBusId([[maybe_unused]] const c10::Device& device) {
  char text[32] = "";
#ifdef USE_CUDA
  if (device.is_cuda() && cudaDeviceGetPCIBusId(text, sizeof text, device.index()) != cudaSuccess) return "";
#endif
  return text;
}

}  // namespace

Place ChoosePlace(const std::string& backend, const shardpack::loader::World& world) {
  Place place;
  const std::size_t devices = at::globalContext().hasCUDA() ? at::getNumGPUs() : 0;
  const bool one_each = devices >= world.local_size;
  if (backend == "nccl" && !kHaveNccl)
    throw std::runtime_error("this train_ddp was built without NCCL: use --backend gloo");
  if (backend == "nccl" && !one_each) {
    throw std::runtime_error("--backend nccl needs a device for each of the " + std::to_string(world.local_size) +
                             " ranks of this machine; " + std::to_string(devices) + " found");
  }
  if (devices == 0) return place;
  place.device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(world.local_rank % devices));
  if (backend == "nccl" || (backend == "auto" && kHaveNccl && one_each)) place.backend = "nccl";
#ifdef USE_CUDA
  c10::cuda::set_device(place.device.index());
#endif
  return place;
}

// NVML's few calls by name, so that nothing need be installed to build or to run without it.
struct BusyMeter::Impl {
  struct Utilization {
    unsigned gpu, memory;
  };
  using Call = int (*)();
  using ByBusId = int (*)(const char*, void**);
  using Rates = int (*)(void*, Utilization*);

  explicit Impl(const std::string& bus_id) {
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto init = reinterpret_cast<Call>(dlsym(library, "nvmlInit_v2"));
    const auto by_bus_id = reinterpret_cast<ByBusId>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    rates = reinterpret_cast<Rates>(dlsym(library, "nvmlDeviceGetUtilizationRates"));
    if (!init || !by_bus_id || !rates || init() != 0 || by_bus_id(bus_id.c_str(), &handle) != 0) return;
    thread = std::thread([this] { Sample(); });
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    if (thread.joinable()) thread.join();
  }

  void Sample() {
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, std::chrono::milliseconds(200), [this] { return stop; })) {
      Utilization now{};
      if (rates(handle, &now) != 0) continue;
      sum += now.gpu;
      ++count;
    }
  }

  void* library = nullptr;  // stays loaded: the driver's libraries do not like to be unloaded
  void* handle = nullptr;
  Rates rates = nullptr;
  std::thread thread;
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  double sum = 0;
  std::uint64_t count = 0;
};

BusyMeter::BusyMeter(const c10::Device& device) {
  if (device.is_cuda()) impl_ = std::make_unique<Impl>(PciBusId(device));
}

BusyMeter::~BusyMeter() = default;

std::optional<double> BusyMeter::Take() {
  if (!impl_) return std::nullopt;
  const std::lock_guard lock(impl_->mutex);
  if (impl_->count == 0) return std::nullopt;
  const double mean = impl_->sum / static_cast<double>(impl_->count);
  impl_->sum = 0;
  impl_->count = 0;
  return mean;
}

}  // namespace train_ddp
