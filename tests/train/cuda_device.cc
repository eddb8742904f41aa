#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "shardpack/loader/cuda/normalise.h"
#include "shardpack/loader/cuda/pinned_memory.h"

using namespace shardpack::loader;

namespace {

bool SkippedWithoutDevice() {
  if (NumCudaDevices() > 0) return false;
  WARN("skipped: no CUDA device");
  return true;
}

// Device memory that goes with the object.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t size) : size_(size) { REQUIRE(cudaMalloc(&data_, size) == cudaSuccess); }
  explicit DeviceBytes(const std::vector<std::uint8_t>& from) : DeviceBytes(from.size()) {
    REQUIRE(cudaMemcpy(data_, from.data(), size_, cudaMemcpyHostToDevice) == cudaSuccess);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  ~DeviceBytes() { cudaFree(data_); }
  void* data() const { return data_; }
  std::vector<std::uint8_t> Read() const {
    std::vector<std::uint8_t> out(size_);
    REQUIRE(cudaMemcpy(out.data(), data_, size_, cudaMemcpyDeviceToHost) == cudaSuccess);
    return out;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

}  // namespace

TEST_CASE("pinned memory falls back to ordinary memory where there is no device", "[cuda]") {
  const auto memory = PinnedMemory();
  const auto block = memory->Allocate(1000);
  std::memset(block.get(), 7, 1000);
  CHECK(memory->pinned() == (NumCudaDevices() > 0));
  CHECK(reinterpret_cast<std::uintptr_t>(block.get()) % 64 == 0);
}

TEST_CASE("the kernel writes what the CPU writes, bit for bit, in each type and layout", "[gpu]") {
  if (SkippedWithoutDevice()) return;
  constexpr std::uint32_t kBatch = 5, kHeight = 37, kWidth = 53;
  std::vector<std::uint8_t> images(std::size_t{3} * kBatch * kHeight * kWidth);
  std::mt19937 random(1);
  for (auto& byte : images) byte = static_cast<std::uint8_t>(random());
  const std::vector<std::uint8_t> flip = {0, 1, 1, 0, 1};
  const NormaliseTable table = MakeNormaliseTable({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f});
  const DeviceNormaliser normaliser(table);
  const DeviceBytes device_images(images), device_flip(flip);

  for (const auto type : {PixelType::kFloat32, PixelType::kFloat16, PixelType::kBfloat16}) {
    for (const auto layout : {PixelLayout::kNhwc, PixelLayout::kNchw}) {
      std::vector<std::uint8_t> wanted(images.size() * BytesOf(type));
      NormaliseOnCpu({images.data(), flip.data(), wanted.data(), kBatch, kHeight, kWidth, type, layout}, table);
      const DeviceBytes out(wanted.size());
      normaliser.Launch(
          {static_cast<const std::uint8_t*>(device_images.data()), static_cast<const std::uint8_t*>(device_flip.data()),
           out.data(), kBatch, kHeight, kWidth, type, layout},
          nullptr);
      REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
      CHECK(out.Read() == wanted);
    }
  }
}
