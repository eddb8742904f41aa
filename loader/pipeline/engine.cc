#include "loader/pipeline/engine.h"

#include <tbb/info.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "loader/pipeline/engine_options.h"
#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

// TBB's pool has one thread less than there are CPUs, the missing one being the caller's. Our consumer does not decode,
// so a loader that is asked for as many threads as there are CPUs needs a larger pool. All loaders ask for the same
// limit, for the smallest one asked for counts.
constexpr std::size_t kPoolLimit = 256;

std::optional<tbb::global_control> PoolFor(int threads) {
  std::optional<tbb::global_control> control;
  if (threads + 1 > tbb::info::default_concurrency()) {
    control.emplace(tbb::global_control::max_allowed_parallelism, kPoolLimit);
  }
  return control;
}

[[noreturn]] void RefuseState(const char* what, const std::string& theirs, const std::string& ours) {
  throw Error(ErrorCode::kInvalidArgument,
              std::string("the state is of another ") + what + ": " + theirs + ", this loader has " + ours);
}

SlotShape ShapeOf(const LoaderOptions& o, LabelKind kind) {
  const bool labels = kind == LabelKind::kClass || kind == LabelKind::kInteger;
  return {o.batch_size, o.transform.width, o.transform.height, o.output.dtype, o.output.layout, labels};
}

}  // namespace

StepPlan MakePlan(const LoaderOptions& options, std::uint64_t num_samples, std::uint64_t consumed) {
  StepPlan plan;
  plan.num_samples = num_samples;
  plan.consumed = consumed;
  plan.world_size = options.world.size;
  plan.rank = options.world.rank;
  plan.batch_size = options.batch_size;
  plan.tail = options.tail;
  return plan;
}

Engine::Engine(Dataset data, LoaderOptions wanted)
    : dataset(std::move(data)),
      options(Definite(std::move(wanted), dataset)),
      order{dataset.size(), options.shuffle, options.seed},
      dataset_digest(dataset.digest().Hex()),
      shape(ShapeOf(options, dataset.manifest().label_kind)),
      ring(FitRing(options, dataset, shape.Bytes())),
      writer(shape.width, shape.height, shape.dtype, shape.layout, options.transform.mean, options.transform.deviation),
      process_(getpid()),
      pool_(PoolFor(options.threads)),
      arena_(options.threads, /*reserved_for_masters=*/0),
      state_(StateAt(0, 0)) {}

bool Engine::IsForked() const { return getpid() != process_; }

void Engine::CheckProcess() const {
  if (!IsForked()) return;
  throw Error(ErrorCode::kInvalidArgument,
              "open after fork: this loader was made before fork() and has no threads here");
}

std::unique_ptr<SampleDecoder> Engine::BorrowDecoder() {
  {
    std::lock_guard lock(mutex_);
    if (!decoders_.empty()) {
      auto decoder = std::move(decoders_.back());
      decoders_.pop_back();
      return decoder;
    }
  }
  return std::make_unique<SampleDecoder>(options.limits);
}

void Engine::ReturnDecoder(std::unique_ptr<SampleDecoder> decoder) {
  std::lock_guard lock(mutex_);
  decoders_.push_back(std::move(decoder));
}

std::shared_ptr<Ring> Engine::BorrowRing() {
  {
    std::lock_guard lock(mutex_);
    if (idle_ring_) return std::exchange(idle_ring_, nullptr);
  }
  return std::make_shared<Ring>(shape, ring.num_slots, ring.num_beyond, options.allocator);
}

void Engine::ReturnRing(std::shared_ptr<Ring> returned) {
  std::lock_guard lock(mutex_);
  if (!idle_ring_) {
    idle_ring_ = std::move(returned);
  } else {
    returned->Close();  // of one of several iterations at once
  }
}

State Engine::StateAt(std::uint64_t epoch, std::uint64_t consumed) const {
  State state;
  state.dataset = dataset_digest;
  state.order = order.Hash();
  state.seed = options.seed;
  state.epoch = epoch;
  state.consumed = consumed;
  return state;
}

State Engine::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void Engine::SetState(const State& state) {
  std::lock_guard lock(mutex_);
  state_ = state;
}

void Engine::Restore(const State& state) {
  if (state.version != 1) RefuseState("version", std::to_string(state.version), "1");
  if (state.dataset != dataset_digest) RefuseState("dataset", state.dataset, dataset_digest);
  if (state.order != order.Hash()) RefuseState("order", state.order, order.Hash());
  if (state.seed != options.seed) RefuseState("seed", std::to_string(state.seed), std::to_string(options.seed));
  if (state.consumed > order.num_samples) {
    throw Error(ErrorCode::kInvalidArgument, "the state has consumed " + std::to_string(state.consumed) + " of " +
                                                 std::to_string(order.num_samples) + " samples");
  }
  std::lock_guard lock(mutex_);
  state_ = state;
  restored_ = state;
}

std::uint64_t Engine::TakeStart(std::uint64_t epoch) {
  std::lock_guard lock(mutex_);
  if (!restored_ || restored_->epoch != epoch) return 0;
  const std::uint64_t consumed = restored_->consumed;
  restored_.reset();
  return consumed;
}

}  // namespace shardpack::loader
