// `shardpack batch --save`: the loader's own batch as a NumPy array or as a sheet of pictures.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "shardpack/error.h"
#include "shardpack/image.h"
#include "shardpack/loader/data_loader.h"
#include "tools/shardpack/batch.h"

namespace shardpack::tools {
namespace {

void SaveFile(const std::string& path, Bytes head, Bytes body) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) ThrowSystemError(errno, "create", path);
  for (Bytes part : {head, body})
    file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
  file.close();
  if (!file) throw Error(ErrorCode::kIo, "cannot write " + Escaped(path));
}

// NumPy's format 1.0: magic, version, length of the header, the header padded with spaces so that the data is
// 64-aligned.
std::string NpyHead(const loader::Field& field) {
  std::string head = std::string("{'descr': '") + (field.dtype == loader::DType::kFloat32 ? "<f4" : "|u1") +
                     "', 'fortran_order': False, 'shape': (";
  for (std::int64_t extent : field.shape) head += std::to_string(extent) + ", ";
  head += "), }";
  constexpr std::size_t kBefore = 10, kAlignment = 64;
  const std::size_t used = kBefore + head.size() + 1;
  head += std::string((kAlignment - used % kAlignment) % kAlignment, ' ') + '\n';
  std::string magic = "\x93NUMPY\x01";
  magic += '\0';
  magic += static_cast<char>(head.size() & 0xff);
  magic += static_cast<char>(head.size() >> 8);
  return magic + head;
}

// A square of pictures, two grey pixels between them. Padding is dimmed to a quarter.
Image ContactSheet(const loader::Batch& batch) {
  constexpr std::uint32_t kGap = 2;
  const auto& shape = batch.images().shape;
  const auto count = static_cast<std::uint32_t>(shape[0]), height = static_cast<std::uint32_t>(shape[1]),
             width = static_cast<std::uint32_t>(shape[2]);
  const auto columns = static_cast<std::uint32_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::uint32_t rows = (count + columns - 1) / columns;
  Image sheet;
  sheet.width = columns * (width + kGap) + kGap;
  sheet.height = rows * (height + kGap) + kGap;
  sheet.pixels.assign(std::size_t{sheet.width} * sheet.height * 3, 128);
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(batch.images().data);
  const auto* valid = reinterpret_cast<const bool*>(batch.valid().data);
  const std::size_t row_bytes = std::size_t{width} * 3;
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::size_t x = kGap + (k % columns) * std::size_t{width + kGap},
                      y = kGap + (k / columns) * std::size_t{height + kGap};
    for (std::uint32_t row = 0; row < height; ++row, pixels += row_bytes) {
      std::uint8_t* out = sheet.pixels.data() + ((y + row) * sheet.width + x) * 3;
      std::transform(pixels, pixels + row_bytes, out,
                     [dim = !valid[k]](std::uint8_t v) { return static_cast<std::uint8_t>(dim ? v / 4 : v); });
    }
  }
  return sheet;
}

loader::LoaderOptions LoaderOptionsOf(const BatchOptions& o, const loader::StepPlan& plan, bool sheet) {
  loader::LoaderOptions options;
  options.batch_size = o.batch_size;
  options.world.rank = o.rank;
  options.world.size = o.world;
  options.seed = o.seed;
  options.shuffle = o.shuffle == "global" ? loader::Shuffle::kGlobal : loader::Shuffle::kNone;
  options.tail = plan.tail;
  options.transform = loader::TransformFromName(o.transform);
  if (!sheet && o.output == "float32") options.output = {loader::DType::kFloat32, loader::Layout::kNchw};
  options.prefetch_depth = 1;
  options.held_batches = 0;
  options.memory_bytes = 16ull << 30;
  options.warn = [](const std::string& line) { std::fprintf(stderr, "shardpack: %s\n", line.c_str()); };
  return options;
}

}  // namespace

bool IsSheet(const std::string& path) { return path.ends_with(".png"); }
bool IsTensor(const std::string& path) { return path.ends_with(".npy"); }

void SaveStep(const Dataset& dataset, const BatchOptions& o, const loader::StepPlan& plan, std::uint64_t step) {
  const bool sheet = IsSheet(o.save);
  loader::DataLoader data_loader(dataset, LoaderOptionsOf(o, plan, sheet));
  loader::State start = data_loader.state();
  start.epoch = o.epoch;
  start.consumed = o.consumed + step * o.world * o.batch_size;
  data_loader.Restore(start);
  loader::EpochIterator steps = data_loader.Epoch(o.epoch);
  const loader::Batch batch = steps.Next().value();
  if (sheet) {
    SaveFile(o.save, {}, EncodePng(ContactSheet(batch)));
  } else {
    SaveFile(o.save, AsBytes(NpyHead(batch.images())), Bytes(batch.images().data, BytesOf(batch.images())));
  }
}

}  // namespace shardpack::tools
