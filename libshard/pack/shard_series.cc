#include "libshard/pack/shard_series.h"

#include <memory>
#include <system_error>

#include "libshard/pack/output_folder.h"

namespace shardpack {
namespace {

// Shards being synced at once: more would only let the page cache fill.
constexpr std::size_t kMostFinishing = 2;
// A row, its place in the two look-ups, a key of usual length, and what sorting them takes for a while.
constexpr std::uint64_t kIndexBytesARecord = 200;

}  // namespace

void ShardSeries::Open(std::uint64_t number) {
  open_.emplace();
  open_->state.number = number;
}

void ShardSeries::Append(const BatchTask& task, const PackedBatch& batch) {
  if (!open_) Open(task.shard->number);
  FinishedShard& state = open_->state;
  state.bad.insert(state.bad.end(), batch.bad.begin(), batch.bad.end());
  if (!batch.records.empty()) WriteRecords(task, batch);
  if (batch.sums) {
    RecordCounts sums;
    sums.statistics = batch.sums;
    state.counts.Add(sums);
  }
  if (task.ends_shard) Close();
}

void ShardSeries::WriteRecords(const BatchTask& task, const PackedBatch& batch) {
  const PlannedShard& shard = *task.shard;
  if (!open_->writer) {
    ShardWriterOptions options;
    options.sync_marker = SyncMarker(head_.request_digest, shard.number);
    if (head_.label_kind == LabelKind::kClass) options.class_names = head_.classes;
    options.dictionary = head_.codecs.dictionary;
    open_->writer.emplace(work_.PartialPath(shard.number), std::move(options));
  }
  RecordCounts& counts = open_->state.counts;
  std::vector<RecordToWrite> block_records;
  auto block = batch.blocks.begin();
  for (std::size_t r = 0; r < batch.records.size();) {
    if (block == batch.blocks.end() || r != block->first) {
      const PackedBatch::Record& record = batch.records[r++];
      open_->writer->Append(batch.ToWrite(record, shard));
      counts.Add(record.info, shard.inputs[record.input].size);
      continue;
    }
    block_records.clear();
    for (std::size_t i = 0; i < block->count; ++i) {
      const PackedBatch::Record& record = batch.records[r + i];
      block_records.push_back(batch.ToWrite(record, shard));
      RecordInfo info = record.info;
      info.stored_bytes = i == 0 ? static_cast<std::uint32_t>(block->size) : 0;
      counts.Add(info, shard.inputs[record.input].size);
    }
    open_->writer->AppendBlock(block_records, Bytes(batch.frames).subspan(block->position, block->size));
    r += block->count;
    ++block;
  }
}

void ShardSeries::Close() {
  if (finishing_.size() >= kMostFinishing) TakeOne();
  // Only what is journalled counts as done: whatever is cut short before is done again.
  const auto finish = [&work = work_, request = head_.request_digest,
                       shard = std::make_shared<OpenShard>(std::move(*open_))] {
    FinishedShard& state = shard->state;
    if (shard->writer) {
      const ShardSummary summary = shard->writer->Finish();
      state.entry = ShardEntry{ShardFileName(state.number, summary.file_digest), summary.records, summary.bytes,
                               summary.file_digest, summary.index_digest};
      work.Publish(state.number, state.entry->file);
      work.SyncOutput();
    }
    WriteFinished(work.path(), work.token(), request, state);
  };
  const std::uint64_t index_bytes = open_->state.counts.records * kIndexBytesARecord;
  open_.reset();
  std::future<void> done;
  try {
    done = std::async(std::launch::async, finish);
  } catch (const std::system_error&) {  // no thread is to be had: slower, no reason to stop
    done = std::async(std::launch::deferred, finish);
  }
  finishing_.push_back({std::move(done), index_bytes});
  index_bytes_ += index_bytes;
  // Indexes of shards of tiny records are large: where memory is short the next shard waits for this one.
  while (!finishing_.empty() && index_bytes_ > memory_bytes_) TakeOne();
}

void ShardSeries::TakeOne() {
  Finishing oldest = std::move(finishing_.front());
  finishing_.pop_front();
  index_bytes_ -= oldest.index_bytes;
  oldest.done.get();
}

void ShardSeries::Finish() {
  while (!finishing_.empty()) TakeOne();
}

}  // namespace shardpack
