// Batches of a dataset for one rank, decoded ahead of use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "shardpack/dataset.h"
#include "shardpack/image.h"
#include "shardpack/loader/batch.h"
#include "shardpack/loader/order.h"
#include "shardpack/loader/report.h"
#include "shardpack/loader/state.h"
#include "shardpack/loader/transform.h"
#include "shardpack/loader/world.h"

namespace shardpack::loader {

enum class OnBadRecord {
  kSubstitute,  // a classmate drawn by the seeded plan stands in; under Tail::kExact the place is masked instead
  kThrow,
};

struct OutputOptions {
  DType dtype = DType::kUint8;  // kUint8, or kFloat32: normalised by the transform's mean and deviation
  Layout layout = Layout::kNhwc;
};

struct LoaderOptions {
  std::uint32_t batch_size = 1;  // of this rank
  World world{};
  std::uint64_t seed = 0;
  Shuffle shuffle = Shuffle::kGlobal;
  Tail tail = Tail::kPad;
  Transform transform{};
  OutputOptions output{};

  OnBadRecord on_bad_record = OnBadRecord::kSubstitute;
  std::uint64_t max_bad_records = 1000;  // of an epoch on this rank; one more throws
  std::filesystem::path ledger{};        // JSON lines are appended here; empty: none

  std::uint32_t prefetch_depth = 3;  // batches ready or in work ahead of the consumer
  std::uint32_t held_batches = 2;    // batches the user may hold at once beside them without extra memory
  int threads = 0;  // 0: min(affinity, cgroup quota) / ranks of this machine, less one for the consumer, at least 1
  std::uint64_t memory_bytes = 2ull << 30;         // ring, read-ahead and scratch together
  std::shared_ptr<BatchAllocator> allocator{};     // empty: OrdinaryMemory()
  std::function<void(const std::string&)> warn{};  // one line; called from Next() or the constructor
  ImageLimits limits{};
};

// The batches of one epoch, in order. Not thread-safe; one consumer. Ends its tasks in the destructor, at any time,
// also with batches in flight; batches handed out before stay valid.
class EpochIterator {
 public:
  EpochIterator(EpochIterator&&) noexcept;
  EpochIterator& operator=(EpochIterator&&) noexcept;
  ~EpochIterator();

  std::uint64_t num_steps() const noexcept;  // known before a byte is read; the same on every rank

  // Waits for the next batch; nullopt at the epoch's end. When the user holds every slot, takes ordinary memory inside
  // `memory_bytes`, beyond that throws Error with kInvalidArgument: "you hold K batches: clone them or raise
  // held_batches". Throws Error of a bad record under kThrow or over the limit. Never waits for ever.
  std::optional<Batch> Next();

  // For `for (auto& batch : loader.Epoch(0))`: single pass.
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(EpochIterator* epoch) : epoch_(epoch) { ++*this; }
    Batch& operator*() { return *batch_; }
    Iterator& operator++() {
      batch_.reset();  // let the slot go before waiting for the next batch
      batch_ = epoch_->Next();
      if (!batch_) epoch_ = nullptr;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.epoch_ == b.epoch_; }

   private:
    EpochIterator* epoch_ = nullptr;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

  Report report() const;  // so far

 private:
  friend class DataLoader;
  struct Impl;
  explicit EpochIterator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Thread-safe but for Restore(); several epochs may be iterated at once, each with a ring of its own.
class DataLoader {
 public:
  // Throws Error with kInvalidArgument for options that cannot be honoured (naming the option), or where kDrop leaves
  // no step: "10 samples are fewer than one global batch of 16: no step under drop". Calls dataset.CheckShards();
  // what is lost later are bad records.
  DataLoader(Dataset dataset, LoaderOptions options);
  ~DataLoader();

  // From the epoch's start, or from where Restore() said if that was in this epoch (once).
  EpochIterator Epoch(std::uint64_t epoch);

  // The next Epoch(state.epoch) goes on after state.consumed samples. Throws Error with kInvalidArgument where dataset,
  // order or seed differ, naming both values.
  void Restore(const State& state);

  // That of the last batch returned by any iterator; of the start before.
  State state() const;

  const Dataset& dataset() const;
  const LoaderOptions& options() const;  // threads, transform size and allocator filled in
  const Order& order() const;
  StepPlan PlanOf(std::uint64_t consumed) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace shardpack::loader
