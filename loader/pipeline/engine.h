// What the iterations of one loader share: data, options made definite, threads, decoders.
#pragma once

#include <sys/types.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "loader/decode/picture_writer.h"
#include "loader/decode/sample_decoder.h"
#include "loader/pipeline/slot.h"
#include "shardpack/loader/data_loader.h"

namespace shardpack::loader {

// How many batches fit: part of the options made definite.
struct RingSize {
  std::uint32_t depth = 1;       // batches in work or ready
  std::uint32_t num_slots = 1;   // these and the ones held
  std::uint32_t num_beyond = 0;  // of ordinary memory, once the user holds all slots
};

class Engine {
 public:
  // Throws Error with kInvalidArgument, naming the option.
  Engine(Dataset dataset, LoaderOptions options);

  const Dataset dataset;
  const LoaderOptions options;
  const Order order;
  const std::string dataset_digest;
  const SlotShape shape;
  const RingSize ring;
  const PictureWriter writer;

  // Throws Error in a child of fork(): its copies of the threads are gone and locks may stand closed for ever.
  void CheckProcess() const;
  bool IsForked() const;

  tbb::task_arena& arena() { return arena_; }

  // A decoder lent to one task. Kept last in, first out, so that warm scratch memory is used again.
  std::unique_ptr<SampleDecoder> BorrowDecoder();
  void ReturnDecoder(std::unique_ptr<SampleDecoder> decoder);

  // The ring of an iteration. The last one that came back is kept for the next epoch: touching the pages of new slots
  // for the first time cost a fifth of an epoch of 1,000 photographs.
  std::shared_ptr<Ring> BorrowRing();
  void ReturnRing(std::shared_ptr<Ring> ring);

  State StateAt(std::uint64_t epoch, std::uint64_t consumed) const;
  State state() const;
  void SetState(const State& state);

  // Where the next iteration of `epoch` begins: what Restore() left for it, once.
  void Restore(const State& state);
  std::uint64_t TakeStart(std::uint64_t epoch);

 private:
  const pid_t process_;
  std::optional<tbb::global_control> pool_;
  tbb::task_arena arena_;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<SampleDecoder>> decoders_;
  std::shared_ptr<Ring> idle_ring_;
  State state_;
  std::optional<State> restored_;
};

// The steps of `options` over `num_samples` samples from `consumed` on.
StepPlan MakePlan(const LoaderOptions& options, std::uint64_t num_samples, std::uint64_t consumed);

}  // namespace shardpack::loader
