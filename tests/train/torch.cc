#include <ATen/ops/equal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "shardpack/loader/data_loader.h"
#include "shardpack/loader/torch/tensors.h"
#include "tests/loader/picture_dataset.h"

using namespace shardpack::loader;

namespace {

constexpr std::uint32_t kSide = 24;

const PictureDataset& Pictures() {
  static const PictureDataset data({.num_samples = 40, .min_side = kSide, .max_side = kSide});
  return data;
}

LoaderOptions Options() {
  LoaderOptions options;
  options.batch_size = 4;
  options.shuffle = Shuffle::kNone;
  options.threads = 1;
  options.allocator = TorchHostMemory();
  return options;
}

}  // namespace

TEST_CASE("a tensor is the batch's own memory, images as channels-last", "[torch]") {
  DataLoader loader(Pictures().Open(), Options());
  EpochIterator epoch = loader.Epoch(0);
  const Batch batch = *epoch.Next();
  const TensorBatch tensors = TensorsOf(batch);
  CHECK(tensors.images.data_ptr() == batch.images().data);
  CHECK(tensors.labels.data_ptr() == batch.labels().data);
  CHECK(tensors.valid.data_ptr() == batch.valid().data);
  CHECK(tensors.indices.data_ptr() == batch.indices().data);
  CHECK(tensors.images.sizes() == at::IntArrayRef({4, 3, kSide, kSide}));
  CHECK(tensors.images.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(tensors.images.scalar_type() == at::kByte);
  CHECK(tensors.labels.scalar_type() == at::kLong);
  CHECK(tensors.valid.scalar_type() == at::kBool);
}

TEST_CASE("a tensor holds the pixels and labels that were packed", "[torch]") {
  DataLoader loader(Pictures().Open(), Options());
  EpochIterator epoch = loader.Epoch(0);
  epoch.Next();
  const TensorBatch second = TensorsOf(*epoch.Next());
  const std::int64_t place = 2, sample = 4 + place, x = 5, y = 7, channel = 1;
  const auto& picture = Pictures().picture(sample);
  CHECK(second.indices[place].item<std::int64_t>() == sample);
  CHECK(second.labels[place].item<std::int64_t>() == Pictures().label(sample));
  CHECK(second.images[place][channel][y][x].item<int>() == picture.pixels[(y * kSide + x) * 3 + channel]);
}

TEST_CASE("pictures three pixels wide are told from pixels of three channels", "[torch]") {
  const PictureDataset narrow({.num_samples = 8, .min_side = 3, .max_side = 3});
  for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
    LoaderOptions options = Options();
    options.output.layout = layout;
    DataLoader loader(narrow.Open(), options);
    EpochIterator epoch = loader.Epoch(0);
    const Batch batch = *epoch.Next();
    CHECK(batch.images().layout == layout);
    CHECK_FALSE(batch.labels().layout);
    const at::Tensor images = TensorsOf(batch).images;
    CHECK(
        images.is_contiguous(layout == Layout::kNhwc ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous));
    const std::int64_t sample = 1, channel = 2, y = 0, x = 1;
    CHECK(images[sample][channel][y][x].item<int>() == narrow.picture(sample).pixels[(y * 3 + x) * 3 + channel]);
  }
}

TEST_CASE("planes of floats come as a contiguous tensor", "[torch]") {
  LoaderOptions options = Options();
  options.output = {DType::kFloat32, Layout::kNchw};
  DataLoader loader(Pictures().Open(), options);
  EpochIterator epoch = loader.Epoch(0);
  const TensorBatch tensors = TensorsOf(*epoch.Next());
  CHECK(tensors.images.sizes() == at::IntArrayRef({4, 3, kSide, kSide}));
  CHECK(tensors.images.is_contiguous());
  CHECK(tensors.images.scalar_type() == at::kFloat);
}

TEST_CASE("a view of a tensor keeps its slot through the epoch and after the loader's end", "[torch]") {
  at::Tensor view, copy;
  {
    DataLoader loader(Pictures().Open(), Options());
    EpochIterator epoch = loader.Epoch(0);
    view = TensorsOf(*epoch.Next()).images.narrow(0, 1, 2);
    copy = view.clone();
    while (epoch.Next()) CHECK(at::equal(view, copy));
  }
  CHECK(at::equal(view, copy));
}

TEST_CASE("a slot comes back when the last tensor of it is gone", "[torch]") {
  LoaderOptions options = Options();
  options.prefetch_depth = 1;
  options.held_batches = 1;
  DataLoader loader(Pictures().Open(), options);
  EpochIterator epoch = loader.Epoch(0);
  std::vector<void*> places;
  for (std::optional<Batch> batch = epoch.Next(); batch; batch = epoch.Next()) {
    void* place = TensorsOf(*batch).images.data_ptr();
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
    batch.reset();
  }
  CHECK(places.size() < 10);  // steps of the epoch: the ring's slots were used again
}
