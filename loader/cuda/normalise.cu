#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "shardpack/error.h"
#include "shardpack/loader/cuda/normalise.h"

namespace shardpack::loader {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMaxBlocks =
    16384;  // beyond them a thread takes several pixels, which spares loading the table again

void Check(cudaError_t status, const char* doing) {
  if (status != cudaSuccess) {
    throw Error(ErrorCode::kUnsupported, std::string("CUDA cannot ") + doing + ": " + cudaGetErrorString(status));
  }
}

// Neighbouring threads take neighbouring pixels: stores of an NCHW plane are coalesced, and the three bytes a thread
// loads lie in cache lines that its neighbours load too.
__global__ void NormaliseKernel(NormaliseJob job, const NormaliseTable* table) {
  __shared__ NormaliseTable shared;
  for (unsigned i = threadIdx.x; i < 3 * 256; i += blockDim.x) (&shared.value[0][0])[i] = (&table->value[0][0])[i];
  __syncthreads();
  const std::size_t pixels = static_cast<std::size_t>(job.batch) * job.height * job.width;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t p = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; p < pixels; p += stride) {
    NormalisePixel(job, shared, p);
  }
}

}  // namespace

int NumCudaDevices() noexcept {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

struct DeviceNormaliser::Impl {
  NormaliseTable* table = nullptr;
  ~Impl() { cudaFree(table); }
};

DeviceNormaliser::DeviceNormaliser(const NormaliseTable& table) : impl_(std::make_unique<Impl>()) {
  Check(cudaMalloc(reinterpret_cast<void**>(&impl_->table), sizeof table), "allocate device memory");
  Check(cudaMemcpy(impl_->table, &table, sizeof table, cudaMemcpyHostToDevice), "copy to the device");
}

DeviceNormaliser::DeviceNormaliser(DeviceNormaliser&&) noexcept = default;
DeviceNormaliser& DeviceNormaliser::operator=(DeviceNormaliser&&) noexcept = default;
DeviceNormaliser::~DeviceNormaliser() = default;

void DeviceNormaliser::Launch(const NormaliseJob& job, void* stream) const {
  const std::size_t pixels = static_cast<std::size_t>(job.batch) * job.height * job.width;
  if (pixels == 0) return;
  const auto blocks = static_cast<unsigned>(std::min(kMaxBlocks, (pixels + kThreads - 1) / kThreads));
  NormaliseKernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(job, impl_->table);
  Check(cudaGetLastError(), "launch the normalise kernel");
}

}  // namespace shardpack::loader
