#include "loader/pipeline/epoch_run.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "loader/pipeline/pump_task.h"
#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

using Clock = std::chrono::steady_clock;
double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Eight shares a thread and batch even out images of different cost; 64 places keep the cost of a hand-over small where
// an image takes microseconds.
std::uint32_t GrainFor(std::uint32_t batch_size, int threads) {
  constexpr std::uint64_t kShares = 8, kLargest = 64;
  const std::uint64_t shares = kShares * static_cast<std::uint64_t>(threads);
  return static_cast<std::uint32_t>(std::clamp((batch_size + shares - 1) / shares, std::uint64_t{1}, kLargest));
}

std::optional<Permutation> PermutationOf(const Order& order, std::uint64_t epoch) {
  if (order.shuffle == Shuffle::kNone) return std::nullopt;
  return Permutation(order.num_samples, order.seed, epoch);
}

}  // namespace

EpochRun::EpochRun(std::shared_ptr<Engine> engine, std::uint64_t epoch, std::uint64_t consumed)
    : engine_(std::move(engine)),
      epoch_(epoch),
      plan_(MakePlan(engine_->options, engine_->dataset.size(), consumed)),
      num_steps_(plan_.num_steps()),
      permutation_(PermutationOf(engine_->order, epoch)),
      grain_(GrainFor(engine_->options.batch_size, engine_->options.threads)),
      ring_(engine_->BorrowRing()),
      ledger_(engine_->options.ledger) {}

EpochRun::~EpochRun() { assert(pumps_ == 0); }

void EpochRun::Stop() {
  std::unique_lock lock(mutex_);
  stop_ = true;
  idle_.wait(lock, [this] { return pumps_ == 0; });
  lock.unlock();
  for (auto& batch : queue_) ring_->Return(std::move(batch->slot));
  queue_.clear();
  engine_->ReturnRing(std::move(ring_));
}

std::optional<Batch> EpochRun::Next() {
  engine_->CheckProcess();
  if (failed_) std::rethrow_exception(failed_);
  const auto start = Clock::now();
  if (!first_wait_) first_wait_ = start;
  Issue();
  if (next_delivery_ == num_steps_) return std::nullopt;
  if (next_delivery_ == next_issue_) IssueBeyondRing();
  Ring::SlotPtr slot = WaitForFront();
  ++next_delivery_;
  report_.consumer_wait_seconds += SecondsSince(start);
  try {
    Settle(*slot);
  } catch (...) {
    failed_ = std::current_exception();
    ring_->Return(std::move(slot));
    throw;
  }
  try {
    Issue();
  } catch (...) {
    failed_ = std::current_exception();  // for the next call: this batch is good
  }
  report_.seconds = SecondsSince(*first_wait_);
  if (report_.steps++ == 0) report_.first_batch_seconds = report_.seconds;
  report_.images += slot->num_valid;
  engine_->SetState(slot->state_after);
  return Batch(ring_->Share(std::move(slot)));
}

Report EpochRun::report() const {
  Report report = report_;
  std::lock_guard lock(mutex_);
  report.read_seconds = costs_.read;
  report.decode_seconds = costs_.decode;
  report.transform_seconds = costs_.transform;
  report.bytes_read = costs_.bytes_read;
  return report;
}

// ---- the consumer's side

bool EpochRun::HasRoom() const {
  return next_issue_ < num_steps_ && next_issue_ - next_delivery_ < engine_->ring.depth;
}

void EpochRun::Issue() {
  while (HasRoom()) {
    Ring::SlotPtr slot = ring_->Take();
    if (!slot) break;
    Enqueue(std::move(slot));
  }
}

// The user holds every slot, so none comes back by waiting.
void EpochRun::IssueBeyondRing() {
  Ring::SlotPtr slot = ring_->TakeBeyond();
  if (!slot) {
    throw Error(ErrorCode::kInvalidArgument,
                "you hold " + std::to_string(ring_->num_shared()) + " batches: clone them or raise held_batches");
  }
  Enqueue(std::move(slot));
}

void EpochRun::Enqueue(Ring::SlotPtr slot) {
  slot->step = next_issue_;
  slot->slice = plan_.SliceOf(next_issue_);
  slot->num_valid = slot->slice.num_valid;
  slot->global_valid = plan_.GlobalValid(next_issue_);
  slot->state_after = engine_->StateAt(epoch_, slot->slice.consumed_after);
  slot->bad.clear();
  slot->error = nullptr;
  auto batch = std::make_unique<InFlight>();
  batch->slot = std::move(slot);
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(batch));
    places_to_give_ += engine_->options.batch_size;
  }
  ++next_issue_;
  StartPumps();
}

void EpochRun::StartPumps() {
  int wanted = 0;
  {
    std::lock_guard lock(mutex_);
    const std::size_t chunks = (places_to_give_ + grain_ - 1) / grain_;
    wanted =
        static_cast<int>(std::min<std::size_t>(chunks, static_cast<std::size_t>(engine_->options.threads))) - pumps_;
    pumps_ += std::max(wanted, 0);
  }
  for (; wanted > 0; --wanted) {
    try {
      PumpTask<EpochRun>::Before(this);
      engine_->arena().enqueue(PumpTask<EpochRun>{this});
    } catch (...) {
      std::lock_guard lock(mutex_);
      pumps_ -= wanted;
      throw;
    }
  }
}

Ring::SlotPtr EpochRun::WaitForFront() {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [this] { return queue_.front()->done == engine_->options.batch_size; });
  Ring::SlotPtr slot = std::move(queue_.front()->slot);
  queue_.pop_front();
  return slot;
}

// Tells of bad records in order of step and place, so that limit and ledger do not depend on threads.
void EpochRun::Settle(Batch::Slot& slot) {
  std::sort(slot.bad.begin(), slot.bad.end(), [](const BadPlace& a, const BadPlace& b) { return a.place < b.place; });
  for (const BadPlace& bad : slot.bad) {
    if (slot.error && slot.error_place < bad.place) break;
    TellBad(bad);
    if (bad.masked) --slot.num_valid;
  }
  if (slot.error) std::rethrow_exception(slot.error);
}

void EpochRun::TellBad(const BadPlace& bad) {
  const BadRecord& record = bad.record;
  ++(bad.masked ? report_.masked : report_.substituted);
  report_.bad_records.push_back(record);
  ledger_.Append(record);
  const LoaderOptions& options = engine_->options;
  if (report_.bad_records.size() > options.max_bad_records) {
    throw Error(ErrorCode::kCorruption, Location{record.shard, record.record, record.offset},
                record.reason + "; this is bad record number " + std::to_string(report_.bad_records.size()) +
                    " of the epoch on this rank, max_bad_records is " + std::to_string(options.max_bad_records));
  }
  if (!options.warn) return;
  const Error error(ErrorCode::kCorruption, Location{record.shard, record.record, record.offset}, record.reason);
  options.warn(std::string(error.what()) +
               (bad.masked ? "; masked" : "; sample " + std::to_string(record.delivered) + " stands in"));
}

// ---- the tasks' side

void EpochRun::Pump() {
  std::unique_ptr<SampleDecoder> decoder;
  std::unique_lock lock(mutex_);
  for (Chunk chunk; !stop_ && (chunk = TakeChunk()).batch;) {
    lock.unlock();
    ChunkResult result;
    try {
      if (!decoder) decoder = engine_->BorrowDecoder();
      result = Fill(chunk, *decoder);
    } catch (...) {
      result.error = std::current_exception();
      result.error_place = chunk.begin;
    }
    lock.lock();
    Finish(chunk, std::move(result));
  }
  // All with the mutex held since no work was found: StartPumps() must not count on a pump that is about to leave, and
  // Stop() may return, and this object end, as soon as it is let go.
  if (decoder) engine_->ReturnDecoder(std::move(decoder));
  if (--pumps_ == 0) idle_.notify_all();
}

EpochRun::Chunk EpochRun::TakeChunk() {
  if (places_to_give_ == 0) return {};
  const std::uint32_t batch_size = engine_->options.batch_size;
  for (const auto& batch : queue_) {
    if (batch->next_place == batch_size) continue;
    const std::uint32_t begin = batch->next_place, count = std::min(grain_, batch_size - begin);
    batch->next_place += count;
    places_to_give_ -= count;
    return {batch.get(), begin, begin + count};
  }
  return {};
}

ChunkResult EpochRun::Fill(const Chunk& chunk, SampleDecoder& decoder) {
  ChunkResult result;
  Batch::Slot& slot = *chunk.batch->slot;
  if (slow_reads_.load(std::memory_order_relaxed)) HintAhead(slot.step + 1, chunk);
  for (std::uint32_t k = chunk.begin; k < chunk.end && !stop_.load(std::memory_order_relaxed); ++k) {
    FillPlace(*engine_, epoch_, SampleAt(plan_.PositionOf(slot.slice, k)), k, slot, decoder, result);
  }
  // A read out of the page cache costs about a microsecond and a nanosecond for 4 bytes; five times that is a device.
  const double cached = (chunk.end - chunk.begin) * 5e-6 + static_cast<double>(result.costs.bytes_read) * 1.25e-9;
  slow_reads_.store(result.costs.read > cached, std::memory_order_relaxed);
  return result;
}

// The same places of the next batch will be read a batch's time from now.
void EpochRun::HintAhead(std::uint64_t step, const Chunk& chunk) const {
  if (step >= num_steps_) return;
  const Slice slice = plan_.SliceOf(step);
  for (std::uint32_t k = chunk.begin; k < chunk.end; ++k) {
    try {
      const Dataset::Place place = engine_->dataset.PlaceOf(SampleAt(plan_.PositionOf(slice, k)));
      engine_->dataset.shard(place.shard).WillNeed(place.record);
    } catch (const Error&) {
      // The read itself will say what is wrong.
    }
  }
}

void EpochRun::Finish(const Chunk& chunk, ChunkResult result) {
  Batch::Slot& slot = *chunk.batch->slot;
  costs_.Add(result.costs);
  for (BadPlace& bad : result.bad) slot.bad.push_back(std::move(bad));
  if (result.error && (!slot.error || result.error_place < slot.error_place)) {
    slot.error = result.error;
    slot.error_place = result.error_place;
  }
  chunk.batch->done += chunk.end - chunk.begin;
  if (chunk.batch->done == engine_->options.batch_size) ready_.notify_one();
}

}  // namespace shardpack::loader
