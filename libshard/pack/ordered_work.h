// Batches worked on by several threads and finished in order, inside a memory budget.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "libshard/pack/batch_packer.h"

namespace shardpack {

// Work(k, batch) runs on any of `threads` threads, several at once; Finish(k, batch) runs for k = 0, 1, ... in turn,
// one at a time, on whichever thread is free. A plain queue with one lock a batch instead of tbb::parallel_pipeline,
// whose tokens are counted and not weighed: a batch of one huge file must keep others from starting, without a thread
// waiting inside a stage.
class OrderedWork {
 public:
  struct Functions {
    std::function<std::uint64_t(std::uint64_t k)> cost;  // bytes of memory batch k takes
    // One worker a thread: called on that thread, once.
    std::function<std::function<void(std::uint64_t k, PackedBatch& batch)>()> make_worker;
    std::function<void(std::uint64_t k, PackedBatch& batch)> finish;
  };

  OrderedWork(std::uint64_t num_batches, int threads, std::uint64_t memory_bytes, Functions functions);

  // Returns when all is finished; throws what the first failing call threw (in order of batches for Finish).
  void Run();

 private:
  struct Slot {
    std::unique_ptr<PackedBatch> batch;
    std::uint64_t cost = 0;
    bool done = false;
  };

  void RunThread();
  bool CanStart() const;
  void StartOne(std::unique_lock<std::mutex>& lock, const std::function<void(std::uint64_t, PackedBatch&)>& work);
  void FinishSome(std::unique_lock<std::mutex>& lock);
  void Recycle(std::unique_ptr<PackedBatch> batch);

  const std::uint64_t num_batches_;
  const int threads_;
  const std::uint64_t memory_bytes_;
  const std::size_t max_in_flight_;
  Functions functions_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;      // to be started
  std::uint64_t finished_ = 0;  // slots_ begins with this batch
  std::deque<Slot> slots_;
  std::uint64_t bytes_in_flight_ = 0;
  bool finishing_ = false;
  std::exception_ptr failure_;
  std::vector<std::unique_ptr<PackedBatch>> spare_;
};

}  // namespace shardpack
