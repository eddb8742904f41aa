#include "libshard/pack/part_run.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>

#include "libshard/pack/finished_shards.h"
#include "libshard/pack/ordered_work.h"
#include "libshard/pack/task_arena.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kProgressInterval = std::chrono::milliseconds(100);
constexpr std::uint64_t kLookGrain = 128;  // inputs looked at by one task
// Sums over so many pictures tell mean and deviation to a thousandth.
constexpr std::uint64_t kSamplePictures = 4096;

ImageWorkOptions WorkOptions(const PackOptions& options, int threads) {
  ImageWorkOptions work = WorkOptionsOf(options);
  work.large_picture_bytes = options.memory_bytes / (4 * static_cast<std::uint64_t>(threads));
  return work;
}

// Cheap lossless JPEGs keep their size; pixels take several times that of most encodings.
std::uint64_t CostFactor(ImageMode images) {
  return images == ImageMode::kKeep ? 2 : images == ImageMode::kPixels ? 8 : 4;
}

}  // namespace

// The batches of all shards that are to be done, one shard at a time.
class PartRun::Batches {
 public:
  explicit Batches(const PartRun& run) : run_(run) {}

  std::optional<BatchTask> Next() {
    while (ranges_.empty()) {
      if (next_ == run_.todo_.size()) return std::nullopt;
      run_.LookAtStop();
      shard_ = std::make_shared<PlannedShard>(run_.plan_.Shard(run_.todo_[next_++]));
      const auto ranges = CutIntoBatches(shard_->inputs);
      ranges_.assign(ranges.begin(), ranges.end());
    }
    BatchTask task;
    task.shard = shard_;
    task.range = ranges_.front();
    ranges_.pop_front();
    task.ends_shard = ranges_.empty();
    task.cost = task.range.bytes * CostFactor(run_.options_.images);
    for (std::uint64_t i = task.range.begin; i < task.range.end && !task.in_turn; ++i) {
      task.in_turn = run_.sources_[shard_->inputs[i].source]->IsStream();
    }
    return task;
  }

 private:
  const PartRun& run_;
  std::size_t next_ = 0;
  std::shared_ptr<const PlannedShard> shard_;
  std::deque<InputRange> ranges_;
};

PartRun::PartRun(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources, WorkFolder& work,
                 const Plan& plan, const ShardRange& mine, int threads)
    : options_(options),
      sources_(sources),
      work_(work),
      plan_(plan),
      threads_(threads),
      bad_(LimitOf(options, plan.head().num_inputs)) {
  progress_.stage = "packing";
  for (std::uint64_t s = mine.begin; s < mine.end; ++s) {
    progress_.inputs_total += plan.NumInputs(s);
    progress_.bytes_total += plan.NumBytes(s);
    const auto finished = FinishedOf(work.output(), plan, s);
    if (!finished) {
      todo_.push_back(s);
      continue;
    }
    progress_.inputs_done += plan.NumInputs(s);
    progress_.bytes_done += plan.NumBytes(s);
    bad_.Add(finished->bad);
  }
  progress_.bad_inputs = bad_.count();
}

void PartRun::LookAtInputs() const {
  ArenaOf(threads_).execute([&] {
    for (const std::uint64_t s : todo_) {
      const PlannedShard shard = plan_.Shard(s);
      std::mutex mutex;
      std::uint64_t changed = shard.inputs.size();  // the first
      ParallelFor(0, shard.inputs.size(), kLookGrain, [&](std::uint64_t i) {
        LookAtStop();
        const PlannedInput& input = shard.inputs[i];
        Source& source = *sources_[input.source];
        try {
          if (source.IsAsPlanned(input)) return;
        } catch (const OutOfResources& lack) {
          ThrowSystemError(lack.error, lack.doing, source.Describe(input));
        }
        const std::lock_guard<std::mutex> lock(mutex);
        changed = std::min(changed, i);
      });
      if (changed == shard.inputs.size()) continue;
      const PlannedInput& input = shard.inputs[changed];
      throw Error(ErrorCode::kInvalidArgument, Location{sources_[input.source]->Describe(input), {}, {}},
                  "was changed or removed since the plan was made: undo that, or look at all inputs again with "
                  "--rescan");
    }
  });
}

// Shards are cut by the size of the inputs, so that the cut is known before any work; decoded pixels may take more.
void PartRun::WarnOfGrowth() const {
  if (!options_.warn || options_.shard_records || options_.images == ImageMode::kKeep) return;
  std::uint64_t records = 0, stored = 0, inputs = 0;
  for (const CodecReceipt& receipt : plan_.head().codecs.receipts) {
    records += receipt.sample_records;
    stored += receipt.sample_stored_bytes;
  }
  for (std::uint64_t s = 0; s < plan_.num_shards(); ++s) inputs = std::max(inputs, plan_.NumInputs(s));
  double each = records > 0 ? static_cast<double>(stored) / static_cast<double>(records) : 0;
  if (records == 0 && options_.images == ImageMode::kPixels && options_.resize) {
    each = 3.0 * options_.resize->width * options_.resize->height;
  }
  const double bytes = each * static_cast<double>(inputs), wanted = static_cast<double>(options_.shard_bytes);
  if (bytes <= wanted * 1.25) return;
  options_.warn("shards will be up to " + std::to_string(static_cast<std::uint64_t>(bytes / wanted + 0.5)) +
                " times the shard size: it counts the inputs, and the pictures as stored take more");
}

void PartRun::Pack() {
  WarnOfGrowth();
  if (options_.progress) options_.progress(progress_);
  LookAtStop();
  const PlanHead& head = plan_.head();
  BatchContext context{sources_,
                       head.codecs,
                       WorkOptions(options_, threads_),
                       options_.statistics,
                       std::max<std::uint64_t>(1, head.num_inputs / kSamplePictures),
                       {},
                       options_.stop};
  ShardSeries series(work_, head, options_.memory_bytes / 4);
  Batches batches(*this);
  Clock::time_point last{};
  OrderedWork::Functions functions;
  functions.next = [&] { return batches.Next(); };
  functions.make_packer = [&] { return std::make_unique<BatchPacker>(context); };
  functions.finish = [&](const BatchTask& task, PackedBatch& packed) {
    LookAtStop();
    bad_.Add(packed.bad);
    series.Append(task, packed);
    progress_.inputs_done += task.range.size();
    progress_.bytes_done += task.range.bytes;
    progress_.bad_inputs = bad_.count();
    if (!options_.progress || Clock::now() - last < kProgressInterval) return;
    last = Clock::now();
    options_.progress(progress_);
  };
  OrderedWork(threads_, options_.memory_bytes / 2, std::move(functions)).Run();
  series.Finish();
}

}  // namespace shardpack
