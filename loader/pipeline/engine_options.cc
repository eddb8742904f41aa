#include "loader/pipeline/engine_options.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "shardpack/error.h"
#include "shardpack/threads.h"

namespace shardpack::loader {
namespace {

// TBB's pool never has more threads than this without being told before its start.
constexpr int kMaxThreads = 255;

[[noreturn]] void Refuse(const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); }

void CheckPlain(const LoaderOptions& o) {
  constexpr std::uint64_t kMaxGlobalBatch = 1ull << 62;
  if (o.batch_size == 0) Refuse("batch_size is 0");
  if (o.world.size == 0) Refuse("world.size is 0");
  if (o.world.rank >= o.world.size) {
    Refuse("world.rank = " + std::to_string(o.world.rank) +
           " is not below world.size = " + std::to_string(o.world.size));
  }
  if (std::uint64_t{o.world.size} * o.batch_size >= kMaxGlobalBatch) Refuse("world.size x batch_size is too large");
  if (o.prefetch_depth == 0) Refuse("prefetch_depth is 0: at least one batch must be in work");
  if (o.threads < 0) Refuse("threads = " + std::to_string(o.threads) + " is negative");
  if (o.output.dtype != DType::kUint8 && o.output.dtype != DType::kFloat32)
    Refuse("output.dtype is neither uint8 nor float32");
}

void CheckTransform(const Transform& t, DType dtype) {
  const bool resizes = t.kind == Transform::Kind::kEval || t.kind == Transform::Kind::kClassic;
  if (t.kind != Transform::Kind::kNone && (t.width == 0 || t.height == 0))
    Refuse("transform: the output has no pixels");
  if (resizes && t.resize < std::max(t.width, t.height)) {
    Refuse("transform: resize = " + std::to_string(t.resize) + " is smaller than the output of " +
           std::to_string(t.width) + "x" + std::to_string(t.height));
  }
  if (dtype != DType::kFloat32) return;
  for (float mean : t.mean) {
    if (!std::isfinite(mean)) Refuse("transform.mean must be finite");
  }
  for (float deviation : t.deviation) {
    if (!(std::isfinite(deviation) && deviation != 0)) Refuse("transform.deviation must be finite and not 0");
  }
}

std::string RangeText(const Histogram& values) {
  return std::to_string(values.begin()->first) + " to " + std::to_string(values.rbegin()->first);
}

// Without a transform every image fills a place of the same size: known from the manifest, or from the first record of
// a lone shard.
void SizeFromDataset(Transform& transform, const Dataset& dataset) {
  if (transform.kind != Transform::Kind::kNone || dataset.size() == 0) return;
  const Histogram &widths = dataset.manifest().widths, &heights = dataset.manifest().heights;
  if (widths.size() > 1 || heights.size() > 1) {
    Refuse("without a transform all images must have one size: these are " + RangeText(widths) + " pixels wide and " +
           RangeText(heights) + " high");
  }
  if (!widths.empty() && !heights.empty()) {
    transform.width = widths.begin()->first;
    transform.height = heights.begin()->first;
    return;
  }
  const RecordInfo first = dataset.Info(0);
  transform.width = first.width;
  transform.height = first.height;
}

// Decoded pictures and encoded bytes of all threads. The largest width and the largest height may be of different
// images; so half of the memory is the most that is set aside.
std::uint64_t ScratchBytes(const LoaderOptions& options, const Dataset& dataset) {
  const Manifest& manifest = dataset.manifest();
  if (manifest.widths.empty() || manifest.heights.empty()) return 0;
  __extension__ using Wide = unsigned __int128;
  const Wide pixels = Wide{manifest.widths.rbegin()->first} * manifest.heights.rbegin()->first;
  const Wide bytes = pixels * 4 * static_cast<unsigned>(options.threads);  // RGB, and a third again for the rest
  return static_cast<std::uint64_t>(std::min<Wide>(bytes, options.memory_bytes / 2));
}

}  // namespace

LoaderOptions Definite(LoaderOptions options, const Dataset& dataset) {
  CheckPlain(options);
  CheckTransform(options.transform, options.output.dtype);
  // A whole shard that is missing or cut is known before training: nobody wants to train on stand-ins for it.
  dataset.CheckShards();
  SizeFromDataset(options.transform, dataset);
  if (options.threads == 0) {
    const int share = AvailableThreads() / static_cast<int>(std::max(1u, options.world.local_size));
    options.threads = std::max(1, share - 1);
  }
  options.threads = std::min(options.threads, kMaxThreads);
  if (!options.allocator) options.allocator = OrdinaryMemory();
  const StepPlan plan = MakePlan(options, dataset.size(), 0);
  if (options.tail == Tail::kDrop && plan.num_steps() == 0) {
    Refuse(std::to_string(dataset.size()) + " samples are fewer than one global batch of " +
           std::to_string(std::uint64_t{options.world.size} * options.batch_size) + ": no step under drop");
  }
  return options;
}

RingSize FitRing(const LoaderOptions& options, const Dataset& dataset, std::size_t slot_bytes) {
  const std::uint64_t scratch = ScratchBytes(options, dataset);
  const std::uint64_t fitting = (options.memory_bytes - scratch) / std::max<std::size_t>(slot_bytes, 1);
  if (fitting == 0) {
    Refuse("memory_bytes = " + std::to_string(options.memory_bytes) + " does not hold one batch of " +
           std::to_string(slot_bytes) + " bytes and " + std::to_string(scratch) + " of scratch memory");
  }
  const std::uint64_t wanted = std::uint64_t{options.prefetch_depth} + options.held_batches;
  RingSize size;
  size.num_slots = static_cast<std::uint32_t>(std::min({fitting, wanted, std::uint64_t{1} << 20}));
  size.depth = size.num_slots > options.held_batches ? size.num_slots - options.held_batches : 1;
  size.depth = std::min(size.depth, options.prefetch_depth);
  size.num_beyond = static_cast<std::uint32_t>(std::min<std::uint64_t>(fitting - size.num_slots, 1u << 20));
  if (size.num_slots < wanted && options.warn) {
    options.warn("memory_bytes = " + std::to_string(options.memory_bytes) + " holds " + std::to_string(size.num_slots) +
                 " batches of " + std::to_string(slot_bytes) + " bytes instead of " + std::to_string(wanted) +
                 ": prefetch_depth is " + std::to_string(size.depth));
  }
  return size;
}

}  // namespace shardpack::loader
