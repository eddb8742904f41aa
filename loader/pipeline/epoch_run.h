// One iteration over an epoch: issues batches, lets tasks decode them, delivers them in order.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

#include "loader/pipeline/engine.h"
#include "loader/pipeline/ledger.h"
#include "loader/pipeline/place_filler.h"
#include "loader/pipeline/pump_task.h"
#include "loader/pipeline/slot.h"

namespace shardpack::loader {

// Batches in work stand in a queue in order of step. A task ("pump") takes the next few places of the first batch that
// has some to give, fills them and comes back, until there are none: so the batch due first is worked on first, and
// nobody idles at a batch's end. One consumer calls Next(), report() and Stop().
class EpochRun {
 public:
  EpochRun(std::shared_ptr<Engine> engine, std::uint64_t epoch, std::uint64_t consumed);
  // Stop() has been called or nothing was ever issued.
  ~EpochRun();

  std::uint64_t num_steps() const { return num_steps_; }
  std::optional<Batch> Next();
  Report report() const;

  // Lets tasks stop at their next sample and waits for them.
  void Stop();
  Engine& engine() { return *engine_; }

 private:
  struct InFlight {
    Ring::SlotPtr slot;
    std::uint32_t next_place = 0;  // to be given to a task
    std::uint32_t done = 0;
  };
  struct Chunk {
    InFlight* batch = nullptr;
    std::uint32_t begin = 0, end = 0;
  };

  void Issue();
  void Enqueue(Ring::SlotPtr slot);
  void StartPumps();
  bool HasRoom() const;
  void IssueBeyondRing();
  Ring::SlotPtr WaitForFront();
  void Settle(Batch::Slot& slot);
  void TellBad(const BadPlace& bad);

  friend struct PumpTask<EpochRun>;
  void Pump();
  Chunk TakeChunk();  // with mutex_ held
  ChunkResult Fill(const Chunk& chunk, SampleDecoder& decoder);
  void Finish(const Chunk& chunk, ChunkResult result);  // with mutex_ held
  std::uint64_t SampleAt(std::uint64_t position) const { return permutation_ ? (*permutation_)(position) : position; }
  void HintAhead(std::uint64_t step, const Chunk& chunk) const;

  const std::shared_ptr<Engine> engine_;
  const std::uint64_t epoch_;
  const StepPlan plan_;
  const std::uint64_t num_steps_;
  const std::optional<Permutation> permutation_;  // none without shuffling
  const std::uint32_t grain_;                     // places a task takes at once
  std::shared_ptr<Ring> ring_;                    // the engine's again after Stop()

  // The consumer's own.
  std::uint64_t next_issue_ = 0, next_delivery_ = 0;
  std::exception_ptr failed_;
  Ledger ledger_;
  std::optional<std::chrono::steady_clock::time_point> first_wait_;
  Report report_;

  mutable std::mutex mutex_;
  std::condition_variable ready_, idle_;
  std::deque<std::unique_ptr<InFlight>> queue_;
  std::size_t places_to_give_ = 0;
  int pumps_ = 0;
  std::atomic<bool> stop_{false};  // written with mutex_ held
  std::atomic<bool> slow_reads_{true};
  StageCosts costs_;
};

}  // namespace shardpack::loader
