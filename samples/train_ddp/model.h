// The networks train_ddp knows.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace train_ddp {

struct ModelOptions {
  std::string name = "cnn";  // cnn, resnet18, resnet50
  std::uint32_t width = 0, height = 0;
  std::int64_t num_classes = 0;
  double dropout = 0;  // of the cnn
};

// An image classifier: [B, 3, H, W] float to [B, classes].
class Model {
 public:
  explicit Model(const ModelOptions& options);
  ~Model();

  at::Tensor Forward(const at::Tensor& images);
  void SetTraining(bool training);
  void ToDevice(const c10::Device& device, bool channels_last);

  std::vector<at::Tensor> Parameters() const;
  std::vector<at::Tensor> Buffers() const;  // running statistics

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace train_ddp
