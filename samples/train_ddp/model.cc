#include "samples/train_ddp/model.h"

#include <ATen/ops/relu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <stdexcept>

namespace train_ddp {
namespace {

namespace nn = torch::nn;

nn::Conv2d Convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1,
                       bool bias = false) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(bias));
}

// Two convolutions and two full layers, without batch norm: ranks of any number then train alike.
class SmallNet : public nn::Module {
 public:
  explicit SmallNet(const ModelOptions& o) {
    if (o.width < 4 || o.height < 4) throw std::runtime_error("the cnn needs images of at least 4x4 pixels");
    const std::int64_t flat = 64 * (o.width / 4) * (o.height / 4);
    if (flat > 1 << 20) throw std::runtime_error("the cnn is made for small images: use --transform or a resnet");
    conv1_ = register_module("conv1", Convolution(3, 32, 3, 1, true));
    conv2_ = register_module("conv2", Convolution(32, 64, 3, 1, true));
    pool_ = register_module("pool", nn::MaxPool2d(2));
    drop1_ = register_module("drop1", nn::Dropout(o.dropout / 2));
    full1_ = register_module("full1", nn::Linear(flat, 128));
    drop2_ = register_module("drop2", nn::Dropout(o.dropout));
    full2_ = register_module("full2", nn::Linear(128, o.num_classes));
  }

  at::Tensor forward(at::Tensor x) {
    x = pool_(at::relu(conv1_(x)));
    x = pool_(at::relu(conv2_(x)));
    x = at::relu(full1_(drop1_(x.flatten(1))));
    return full2_(drop2_(x));
  }

 private:
  nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  nn::MaxPool2d pool_{nullptr};
  nn::Dropout drop1_{nullptr}, drop2_{nullptr};
  nn::Linear full1_{nullptr}, full2_{nullptr};
};

// A residual block of torchvision's ResNet: two 3x3 convolutions, or with `bottleneck` 1x1, 3x3 (which carries the
// stride), 1x1 to four times the planes.
class Block : public nn::Module {
 public:
  Block(std::int64_t in, std::int64_t planes, std::int64_t stride, bool bottleneck) {
    const std::int64_t out = bottleneck ? 4 * planes : planes;
    nn::Sequential body;
    if (bottleneck) {
      body->push_back(Convolution(in, planes, 1));
      body->push_back(nn::BatchNorm2d(planes));
      body->push_back(nn::ReLU());
      body->push_back(Convolution(planes, planes, 3, stride));
    } else {
      body->push_back(Convolution(in, planes, 3, stride));
    }
    body->push_back(nn::BatchNorm2d(planes));
    body->push_back(nn::ReLU());
    body->push_back(Convolution(planes, out, bottleneck ? 1 : 3));
    body->push_back(nn::BatchNorm2d(out));
    body_ = register_module("body", body);
    if (stride != 1 || in != out) {
      shortcut_ = register_module("shortcut", nn::Sequential(Convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
    }
  }

  at::Tensor forward(at::Tensor x) {
    const at::Tensor kept = shortcut_.is_empty() ? x : shortcut_->forward(x);
    return at::relu(body_->forward(x) + kept);
  }

 private:
  nn::Sequential body_{nullptr}, shortcut_{nullptr};
};

class ResNet : public nn::Module {
 public:
  ResNet(const std::vector<int>& depths, bool bottleneck, std::int64_t num_classes) {
    nn::Sequential layers(Convolution(3, 64, 7, 2), nn::BatchNorm2d(64), nn::ReLU(),
                          nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
    std::int64_t in = 64;
    for (std::size_t stage = 0; stage < depths.size(); ++stage) {
      const std::int64_t planes = std::int64_t{64} << stage;
      for (int i = 0; i < depths[stage]; ++i) {
        layers->push_back(Block(in, planes, i == 0 && stage > 0 ? 2 : 1, bottleneck));
        in = bottleneck ? 4 * planes : planes;
      }
    }
    layers->push_back(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(1)));
    layers_ = register_module("layers", layers);
    full_ = register_module("full", nn::Linear(in, num_classes));
    for (auto& module : modules(/*include_self=*/false)) {
      if (auto* conv = module->as<nn::Conv2d>())
        nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }

  at::Tensor forward(at::Tensor x) { return full_(layers_->forward(x).flatten(1)); }

 private:
  nn::Sequential layers_{nullptr};
  nn::Linear full_{nullptr};
};

}  // namespace

struct Model::Impl {
  nn::AnyModule module;
};

Model::Model(const ModelOptions& options) : impl_(std::make_unique<Impl>()) {
  if (options.name == "cnn") {
    impl_->module = nn::AnyModule(std::make_shared<SmallNet>(options));
  } else if (options.name == "resnet18") {
    impl_->module = nn::AnyModule(std::make_shared<ResNet>(std::vector<int>{2, 2, 2, 2}, false, options.num_classes));
  } else {
    impl_->module = nn::AnyModule(std::make_shared<ResNet>(std::vector<int>{3, 4, 6, 3}, true, options.num_classes));
  }
}

Model::~Model() = default;

at::Tensor Model::Forward(const at::Tensor& images) { return impl_->module.forward<at::Tensor>(images); }
void Model::SetTraining(bool training) { impl_->module.ptr()->train(training); }

void Model::ToDevice(const c10::Device& device, bool channels_last) {
  at::NoGradGuard no_grad;
  impl_->module.ptr()->to(device);
  if (!channels_last) return;
  for (auto& parameter : impl_->module.ptr()->parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
  }
}

std::vector<at::Tensor> Model::Parameters() const { return impl_->module.ptr()->parameters(); }
std::vector<at::Tensor> Model::Buffers() const { return impl_->module.ptr()->buffers(); }

}  // namespace train_ddp
