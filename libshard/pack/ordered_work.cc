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

OrderedWork::OrderedWork(int threads, std::uint64_t memory_bytes, Functions functions)
    : threads_(std::max(1, threads)),
      memory_bytes_(memory_bytes),
      max_in_flight_(static_cast<std::size_t>(threads_) * 4),
      functions_(std::move(functions)) {}

void OrderedWork::Run() {
  std::vector<std::thread> helpers;
  helpers.reserve(static_cast<std::size_t>(threads_));
  try {
    for (int t = 1; t < threads_; ++t) helpers.emplace_back([this] { RunThread(); });
  } catch (const std::system_error&) {
    // Fewer threads than wanted: slower, no reason to stop.
  } catch (const std::bad_alloc&) {
    // As above; and a thread that runs must be waited for, whatever is thrown.
  }
  RunThread();
  for (std::thread& helper : helpers) helper.join();
  if (failure_) std::rethrow_exception(failure_);
}

bool OrderedWork::CanStart() {
  if (reading_ || slots_.size() >= max_in_flight_) return false;
  if (!waiting_ && !no_more_) {
    waiting_ = functions_.next();
    no_more_ = !waiting_;
    if (no_more_) changed_.notify_all();
  }
  if (!waiting_) return false;
  return slots_.empty() || bytes_in_flight_ + waiting_->cost <= memory_bytes_;
}

void OrderedWork::RunThread() {
  std::unique_lock<std::mutex> lock(mutex_);
  try {
    std::unique_ptr<BatchPacker> packer;
    while (!failure_ && !IsOver()) {
      if (!finishing_ && !slots_.empty() && slots_.front().done) {
        FinishSome(lock);
      } else if (CanStart()) {
        if (!packer) packer = functions_.make_packer();
        StartOne(lock, *packer);
      } else if (!IsOver()) {
        changed_.wait(lock);
      }
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    if (!failure_) failure_ = std::current_exception();
  }
  changed_.notify_all();
}

void OrderedWork::StartOne(std::unique_lock<std::mutex>& lock, BatchPacker& packer) {
  const std::uint64_t k = started_++;
  slots_.emplace_back();
  slots_.back().task = std::move(*waiting_);
  waiting_.reset();
  const BatchTask task = slots_.back().task;
  slots_.back().cost = task.cost;
  bytes_in_flight_ += task.cost;
  std::unique_ptr<PackedBatch> batch;
  if (!spare_.empty()) {
    batch = std::move(spare_.back());
    spare_.pop_back();
  } else {
    batch = std::make_unique<PackedBatch>();
  }
  reading_ = task.in_turn;
  lock.unlock();
  if (task.in_turn) {
    packer.Read(task, *batch);
    lock.lock();
    reading_ = false;
    changed_.notify_one();
    lock.unlock();
  }
  packer.Pack(task, *batch);
  lock.lock();
  Slot& slot = slots_[k - finished_];
  // What it takes indeed: re-encoded pictures may be larger than their inputs.
  const std::uint64_t cost = std::max<std::uint64_t>(task.cost, batch->raw.size() + batch->made.size());
  bytes_in_flight_ += cost - slot.cost;
  slot.cost = cost;
  slot.batch = std::move(batch);
  slot.done = true;
  // Only the batch whose turn it is lets another thread go on.
  if (k == finished_) changed_.notify_one();
}

void OrderedWork::FinishSome(std::unique_lock<std::mutex>& lock) {
  finishing_ = true;
  while (!failure_ && !slots_.empty() && slots_.front().done) {
    std::unique_ptr<PackedBatch> batch = std::move(slots_.front().batch);
    const BatchTask task = std::move(slots_.front().task);
    lock.unlock();
    functions_.finish(task, *batch);
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
  if (batch->capacity() <= kKeptBytes) spare_.push_back(std::move(batch));
}

}  // namespace shardpack
