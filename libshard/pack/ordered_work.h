// Batches worked on by several threads and finished in order, inside a memory budget.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "libshard/pack/batch_packer.h"

namespace shardpack {

// Batches are worked on by any of `threads` threads, several at once, and finished in the order in which they were
// given, one at a time, on whichever thread is free. A plain queue with one lock a batch instead of
// tbb::parallel_pipeline, whose tokens are counted and not weighed: a batch of one huge file must keep others from
// starting, without a thread waiting inside a stage.
class OrderedWork {
 public:
  struct Functions {
    // The next batch; nullopt where there is none any more. One call at a time.
    std::function<std::optional<BatchTask>()> next;
    // One a thread: called on that thread, once.
    std::function<std::unique_ptr<BatchPacker>()> make_packer;
    std::function<void(const BatchTask& task, PackedBatch& batch)> finish;
  };

  OrderedWork(int threads, std::uint64_t memory_bytes, Functions functions);

  // Returns when all is finished; throws what the first failing call threw (in order of batches for `finish`).
  void Run();

 private:
  struct Slot {
    BatchTask task;
    std::unique_ptr<PackedBatch> batch;
    std::uint64_t cost = 0;
    bool done = false;
  };

  void RunThread();
  bool CanStart();
  void StartOne(std::unique_lock<std::mutex>& lock, BatchPacker& packer);
  void FinishSome(std::unique_lock<std::mutex>& lock);
  void Recycle(std::unique_ptr<PackedBatch> batch);
  bool IsOver() const { return no_more_ && !waiting_ && slots_.empty(); }

  const int threads_;
  const std::uint64_t memory_bytes_;
  const std::size_t max_in_flight_;
  Functions functions_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<BatchTask> waiting_;  // to be started
  bool no_more_ = false;
  bool reading_ = false;                      // a batch that is read in turn
  std::uint64_t finished_ = 0, started_ = 0;  // slots_ begins with batch number finished_
  std::deque<Slot> slots_;
  std::uint64_t bytes_in_flight_ = 0;
  bool finishing_ = false;
  std::exception_ptr failure_;
  std::vector<std::unique_ptr<PackedBatch>> spare_;
};

}  // namespace shardpack
