#include "shardpack/loader/torch/tensors.h"

#include <ATen/ops/from_blob.h>

#include <cassert>

namespace shardpack::loader {
namespace {

at::ScalarType ScalarTypeOf(DType type) {
  switch (type) {
    case DType::kUint8:
      return at::kByte;
    case DType::kInt64:
      return at::kLong;
    case DType::kFloat32:
      return at::kFloat;
    case DType::kBool:
      return at::kBool;
  }
  assert(false && "every DType has a scalar type");
  return at::kByte;
}

}  // namespace

at::Tensor TensorOf(const Batch& batch, const Field& field) {
  assert(field.data != nullptr && field.shape.size() == field.strides.size());
  // The storage owns the hold, so that it is views of the storage that count, not this one tensor.
  at::Tensor tensor = at::for_blob(field.data, field.shape)
                          .strides(field.strides)
                          .deleter([hold = batch.hold()](void*) {})
                          .options(at::TensorOptions().dtype(ScalarTypeOf(field.dtype)))
                          .make_tensor();
  return field.layout == Layout::kNhwc ? tensor.permute({0, 3, 1, 2}) : tensor;
}

TensorBatch TensorsOf(const Batch& batch) {
  const Field* const labels = batch.Find("labels");
  return {TensorOf(batch, batch.images()), labels != nullptr ? TensorOf(batch, *labels) : at::Tensor(),
          TensorOf(batch, batch.valid()), TensorOf(batch, batch.indices())};
}

}  // namespace shardpack::loader
