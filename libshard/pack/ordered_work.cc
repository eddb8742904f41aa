#include "libshard/pack/ordered_work.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>

namespace shardpack {
namespace {

// Buffers above this are given back instead of kept for the next batch.
constexpr std::size_t kKeptBytes = 16u << 20;

}  // namespace

OrderedWork::OrderedWork(std::uint64_t num_batches, int threads, std::uint64_t memory_bytes, Functions functions)
    : num_batches_(num_batches),
      threads_(std::max(1, threads)),
      memory_bytes_(memory_bytes),
      max_in_flight_(static_cast<std::size_t>(threads_) * 4),
      functions_(std::move(functions)) {}

void OrderedWork::Run() {
  std::vector<std::thread> helpers;
  const std::uint64_t wanted = std::min<std::uint64_t>(threads_, num_batches_);
  helpers.reserve(wanted);
  try {
    for (std::uint64_t t = 1; t < wanted; ++t) helpers.emplace_back([this] { RunThread(); });
  } catch (const std::system_error&) {
    // Fewer threads than wanted: slower, no reason to stop.
  } catch (const std::bad_alloc&) {
    // As above; and a thread that runs must be waited for, whatever is thrown.
  }
  RunThread();
  for (std::thread& helper : helpers) helper.join();
  if (failure_) std::rethrow_exception(failure_);
}

bool OrderedWork::CanStart() const {
  if (next_ == num_batches_) return false;
  if (slots_.empty()) return true;
  return slots_.size() < max_in_flight_ && bytes_in_flight_ + functions_.cost(next_) <= memory_bytes_;
}

void OrderedWork::RunThread() {
  std::unique_lock<std::mutex> lock(mutex_);
  std::function<void(std::uint64_t, PackedBatch&)> work;
  try {
    work = functions_.make_worker();
    while (!failure_ && finished_ < num_batches_) {
      if (!finishing_ && !slots_.empty() && slots_.front().done) {
        FinishSome(lock);
      } else if (CanStart()) {
        StartOne(lock, work);
      } else {
        changed_.wait(lock);
      }
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    if (!failure_) failure_ = std::current_exception();
  }
  changed_.notify_all();
}

void OrderedWork::StartOne(std::unique_lock<std::mutex>& lock,
                           const std::function<void(std::uint64_t, PackedBatch&)>& work) {
  const std::uint64_t k = next_++;
  slots_.emplace_back();
  slots_.back().cost = functions_.cost(k);
  bytes_in_flight_ += slots_.back().cost;
  std::unique_ptr<PackedBatch> batch;
  if (!spare_.empty()) {
    batch = std::move(spare_.back());
    spare_.pop_back();
  } else {
    batch = std::make_unique<PackedBatch>();
  }
  lock.unlock();
  work(k, *batch);
  lock.lock();
  Slot& slot = slots_[k - finished_];
  slot.batch = std::move(batch);
  slot.done = true;
  // Only the batch whose turn it is lets another thread go on.
  if (k == finished_) changed_.notify_one();
}

void OrderedWork::FinishSome(std::unique_lock<std::mutex>& lock) {
  finishing_ = true;
  while (!failure_ && !slots_.empty() && slots_.front().done) {
    const std::uint64_t k = finished_;
    std::unique_ptr<PackedBatch> batch = std::move(slots_.front().batch);
    lock.unlock();
    functions_.finish(k, *batch);
    lock.lock();
    bytes_in_flight_ -= slots_.front().cost;
    slots_.pop_front();
    ++finished_;
    Recycle(std::move(batch));
    changed_.notify_all();
  }
  finishing_ = false;
}

void OrderedWork::Recycle(std::unique_ptr<PackedBatch> batch) {
  if (batch->raw.capacity() + batch->compressed.capacity() <= kKeptBytes) spare_.push_back(std::move(batch));
}

}  // namespace shardpack
