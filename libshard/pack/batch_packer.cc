#include "libshard/pack/batch_packer.h"

#include <limits>

#include "libshard/pack/codec_choice.h"
#include "libshard/pack/plan_filter.h"
#include "libshard/store/record_block.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kLargestInput = std::numeric_limits<std::uint32_t>::max();  // what a row of the index can say

[[noreturn]] void ThrowBad(const std::string& reason, ErrorCode code = ErrorCode::kBadInput) {
  throw Error(code, reason);
}

// Throws what makes an input bad before it is read.
void CheckPlanned(const PlannedInput& input) {
  if (!input.bad.empty()) ThrowBad(std::string(input.bad), input.bad_code);
  if (input.size == 0) ThrowBad("empty file");
  if (input.size > kLargestInput) ThrowBad("a file of 4 GiB or more");
}

bool IsRead(const PlannedInput& input) { return input.bad.empty() && input.size > 0 && input.size <= kLargestInput; }

void Append(Bytes bytes, std::vector<std::byte>& to, PackedBatch::Place& place) {
  place = {true, to.size(), bytes.size()};
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

RecordToWrite PackedBatch::ToWrite(const Record& record, const PlannedShard& shard) const {
  const PlannedInput& input = shard.inputs[record.input];
  return {record.info, input.key, At(record.payload), AsBytes(input.metadata), At(record.side_data)};
}

struct BatchPacker::Impl {
  explicit Impl(BatchContext& shared) : context(shared), compressor(shared.codecs) {}

  ImageWorker& WorkerFor(const PlannedInput& input);
  void MakeRoom(const BatchTask& task, PackedBatch& out);
  void PackOne(const BatchTask& task, std::uint64_t index, std::size_t position, PackedBatch& out);
  std::uint64_t Store(const PlannedInput& input, const WorkedImage& worked, std::size_t position,
                      PackedBatch::Record& record, PackedBatch& out);
  void CloseBlock(const PlannedShard& shard, PackedBatch& out);
  void TakeBad(const PlannedInput& input, const Error& error, PackedBatch& out) const;
  void LookAtStop() const {
    if (context.stop != nullptr && context.stop->load(std::memory_order_relaxed)) throw Interrupted{};
  }

  BatchContext& context;
  std::optional<ImageWorker> plain, summing;
  RecordCompressor compressor;
  // Records at the end of the batch that will share a block.
  std::size_t open_block = 0;
  std::uint64_t open_bytes = 0;
  std::vector<RecordToWrite> block;
};

ImageWorker& BatchPacker::Impl::WorkerFor(const PlannedInput& input) {
  const bool sums =
      context.statistics == Statistics::kAll ||
      (context.statistics == Statistics::kSample && InputFilter::Hash(input.key) % context.sample_share == 0);
  std::optional<ImageWorker>& worker = sums ? summing : plain;
  if (!worker) {
    ImageWorkOptions work = context.work;
    work.statistics = sums;
    worker.emplace(work, context.large_picture);
  }
  return *worker;
}

void BatchPacker::Impl::MakeRoom(const BatchTask& task, PackedBatch& out) {
  std::size_t needed = 0;
  for (std::uint64_t i = task.range.begin; i < task.range.end; ++i) {
    if (IsRead(task.shard->inputs[i])) needed += task.shard->inputs[i].size;
  }
  // Grown only: what a shorter batch leaves behind is never read.
  if (out.raw.size() < needed) out.raw.resize(needed);
  out.unread.clear();
}

void BatchPacker::Impl::TakeBad(const PlannedInput& input, const Error& error, PackedBatch& out) const {
  BadInput bad;
  bad.key = std::string(input.key);
  bad.source = context.sources[input.source]->Describe(input);
  bad.reason = error.reason();
  bad.offset = error.where().offset;
  bad.code = error.code();
  out.bad.push_back(std::move(bad));
}

// Returns what the record adds to the content of a block; 0 where it is stored alone.
std::uint64_t BatchPacker::Impl::Store(const PlannedInput& input, const WorkedImage& worked, std::size_t position,
                                       PackedBatch::Record& record, PackedBatch& out) {
  RecordInfo& info = record.info;
  const std::size_t at = out.made.size();
  info.codec = compressor.Compress(info.encoding, worked.bytes, out.made);
  const std::uint64_t share = ShareOfBlock(info.raw_bytes, input.key.size(), input.metadata.size());
  if (info.codec == Codec::kZstdBlock && share > kBlockContentBytes) {
    info.codec = compressor.CompressAlone(worked.bytes, out.made);
  }
  if (info.codec == Codec::kStored || info.codec == Codec::kZstdBlock) {
    if (worked.bytes.data() == out.raw.data() + position) {
      record.payload = {false, position, worked.bytes.size()};
    } else {
      Append(worked.bytes, out.made, record.payload);
    }
    info.stored_xxh3 = info.encoded_xxh3;
  } else {
    record.payload = {true, at, out.made.size() - at};
    info.stored_xxh3 = Xxh3_64(out.At(record.payload));
  }
  info.stored_bytes = static_cast<std::uint32_t>(record.payload.size);
  if (!worked.side_data.empty()) Append(worked.side_data, out.made, record.side_data);
  return info.codec == Codec::kZstdBlock ? share : 0;
}

void BatchPacker::Impl::CloseBlock(const PlannedShard& shard, PackedBatch& out) {
  if (open_block == out.records.size()) return;
  block.clear();
  for (std::size_t r = open_block; r < out.records.size(); ++r) block.push_back(out.ToWrite(out.records[r], shard));
  const std::size_t at = out.frames.size();
  const std::size_t size = compressor.CompressBlock(block, out.frames);
  out.blocks.push_back({open_block, block.size(), at, size});
  open_block = out.records.size();
  open_bytes = 0;
}

void BatchPacker::Impl::PackOne(const BatchTask& task, std::uint64_t index, std::size_t position, PackedBatch& out) {
  const PlannedInput& input = task.shard->inputs[index];
  CheckPlanned(input);
  if (!task.in_turn) context.sources[input.source]->Read(input, out.raw.data() + position);
  for (const auto& [unread, error] : out.unread) {
    if (unread == index) throw error;
  }
  const WorkedImage worked = WorkerFor(input).Work(Bytes(out.raw).subspan(position, input.size));

  PackedBatch::Record record;
  record.input = index;
  RecordInfo& info = record.info;
  info.raw_bytes = static_cast<std::uint32_t>(worked.bytes.size());
  info.label = input.label;
  info.width = worked.info.width;
  info.height = worked.info.height;
  info.channels = worked.info.channels;
  info.bit_depth = worked.info.bit_depth;
  info.encoding = worked.info.encoding;
  info.orientation = worked.info.orientation;
  info.encoded_xxh3 = Xxh3_64(worked.bytes);
  const std::uint64_t share = Store(input, worked, position, record, out);
  if (share == 0 || open_bytes + share > kBlockContentBytes) CloseBlock(*task.shard, out);
  out.records.push_back(record);
  if (share == 0) {
    open_block = out.records.size();
  } else {
    open_bytes += share;
  }
  if (worked.sums.pictures == 0) return;
  RecordCounts sum;
  sum.statistics = out.sums;
  RecordCounts one;
  one.statistics = worked.sums;
  sum.Add(one);
  out.sums = sum.statistics;
}

BatchPacker::BatchPacker(BatchContext& context) : impl_(std::make_unique<Impl>(context)) {}
BatchPacker::~BatchPacker() = default;

void BatchPacker::Read(const BatchTask& task, PackedBatch& out) {
  impl_->MakeRoom(task, out);
  std::size_t position = 0;
  for (std::uint64_t i = task.range.begin; i < task.range.end; ++i) {
    impl_->LookAtStop();
    const PlannedInput& input = task.shard->inputs[i];
    if (!IsRead(input)) continue;
    Source& source = *impl_->context.sources[input.source];
    try {
      source.Read(input, out.raw.data() + position);
    } catch (const OutOfResources& lack) {
      ThrowSystemError(lack.error, lack.doing, source.Describe(input));
    } catch (const Error& error) {
      // What follows in a stream that failed cannot be read either.
      if (source.IsStream()) throw Error(error.code(), Location{source.Describe(input), {}, {}}, error.reason());
      out.unread.emplace_back(i, error);
    }
    position += input.size;
  }
}

void BatchPacker::Pack(const BatchTask& task, PackedBatch& out) {
  if (!task.in_turn) impl_->MakeRoom(task, out);
  out.records.clear();
  out.blocks.clear();
  out.bad.clear();
  out.made.clear();
  out.frames.clear();
  out.sums.reset();
  impl_->open_block = 0;
  impl_->open_bytes = 0;
  std::size_t position = 0;
  for (std::uint64_t i = task.range.begin; i < task.range.end; ++i) {
    impl_->LookAtStop();
    const PlannedInput& input = task.shard->inputs[i];
    try {
      impl_->PackOne(task, i, position, out);
    } catch (const OutOfResources& lack) {
      ThrowSystemError(lack.error, lack.doing, impl_->context.sources[input.source]->Describe(input));
    } catch (const Error& error) {
      impl_->TakeBad(input, error, out);
    }
    if (IsRead(input)) position += input.size;
  }
  impl_->CloseBlock(*task.shard, out);
}

}  // namespace shardpack
