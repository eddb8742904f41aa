#include "libshard/pack/shard_series.h"

#include <memory>
#include <system_error>

namespace shardpack {
namespace {

// Shards being synced at once: more would only let the page cache fill.
constexpr std::size_t kMostFinishing = 2;

}  // namespace

ShardSeries::ShardSeries(WorkFolder& work, const Inputs& inputs, Digest128 request)
    : work_(work), inputs_(inputs), request_(request) {}

void ShardSeries::OpenShard(std::uint64_t shard) {
  ShardWriterOptions options;
  options.sync_marker = SyncMarker(request_, shard);
  options.class_names = inputs_.classes;
  writer_.emplace(work_.PartialPath(shard), std::move(options));
  shard_ = shard;
}

void ShardSeries::CloseShard() {
  if (!writer_) return;
  if (finishing_.size() >= kMostFinishing) TakeSummary();
  const auto finish = [writer = std::make_shared<ShardWriter>(std::move(*writer_))] { return writer->Finish(); };
  writer_.reset();
  std::future<ShardSummary> summary;
  try {
    summary = std::async(std::launch::async, finish);
  } catch (const std::system_error&) {  // no thread is to be had: slower, no reason to stop
    summary = std::async(std::launch::deferred, finish);
  }
  finishing_.push_back({shard_, std::move(summary)});
}

void ShardSeries::TakeSummary() {
  const ShardSummary summary = finishing_.front().summary.get();
  numbers_.push_back(finishing_.front().number);
  finishing_.pop_front();
  ShardEntry entry;
  entry.file = ShardFileName(numbers_.back(), summary.file_digest);
  entry.records = summary.records;
  entry.bytes = summary.bytes;
  entry.digest = summary.file_digest;
  entry.index_digest = summary.index_digest;
  manifest_.shards.push_back(std::move(entry));
}

void ShardSeries::Append(std::uint64_t shard, const PackedBatch& batch) {
  if (batch.records.empty()) return;  // a shard whose inputs are all bad is never opened
  if (writer_ && shard_ != shard) CloseShard();
  if (!writer_) OpenShard(shard);
  for (const PackedBatch::Record& record : batch.records) {
    RecordToWrite out;
    out.info = record.info;
    out.key = inputs_.list[record.input].key;
    out.payload = batch.Payload(record);
    writer_->Append(out);
    Count(record, out.key);
  }
}

void ShardSeries::Count(const PackedBatch::Record& record, std::string_view key) {
  const RecordInfo& info = record.info;
  digester_.Add(key, info.label, {}, info.encoding, info.encoded_xxh3);
  ++manifest_.records;
  manifest_.bytes_in += info.raw_bytes;
  ++manifest_.widths[info.width];
  ++manifest_.heights[info.height];
  ++encodings_[static_cast<std::uint8_t>(info.encoding)];
  CodecCount& codec = codecs_[static_cast<std::uint8_t>(info.codec)];
  ++codec.records;
  codec.raw_bytes += info.raw_bytes;
  codec.stored_bytes += info.stored_bytes;
}

Manifest ShardSeries::Finish() {
  CloseShard();
  while (!finishing_.empty()) TakeSummary();
  for (std::size_t s = 0; s < numbers_.size(); ++s) {
    work_.Publish(numbers_[s], manifest_.shards[s].file);
    manifest_.bytes_out += manifest_.shards[s].bytes;
  }
  for (int e = 0; e < 256; ++e) {
    if (encodings_[e] > 0) manifest_.encodings[std::string(Name(static_cast<Encoding>(e)))] = encodings_[e];
  }
  for (int c = 0; c < 256; ++c) {
    if (codecs_[c].records > 0) manifest_.codecs[std::string(Name(static_cast<Codec>(c)))] = codecs_[c];
  }
  manifest_.classes = inputs_.classes;
  manifest_.label_kind = LabelKind::kClass;
  manifest_.dataset_digest = digester_.Finish(inputs_.classes);
  manifest_.request_digest = request_;
  return std::move(manifest_);
}

}  // namespace shardpack
