#include "libshard/pack/codec_sample.h"

#include <zstd.h>

#include <algorithm>

#include "libshard/pack/task_arena.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::size_t kEnoughWithoutGain = 64;
constexpr std::size_t kTried = 16;
constexpr std::size_t kTinyRecord = 4096;  // those may gain by a dictionary, and cost little

bool IsEntropyCoded(Encoding encoding) {
  return encoding == Encoding::kJpeg || encoding == Encoding::kWebp || encoding == Encoding::kPng ||
         encoding == Encoding::kGif;
}

// Whether the first records of one encoding that are large lose less than a fiftieth under zstd.
class GainByEncoding {
 public:
  explicit GainByEncoding(const std::vector<SampleRecord>& records) {
    std::vector<std::byte> out;
    for (const SampleRecord& record : records) {
      if (!IsLargeAndCoded(record)) continue;
      Sums& sums = sums_[record.encoding];
      if (sums.tried == kTried) continue;
      out.resize(ZSTD_compressBound(record.bytes.size()));
      const std::size_t size = ZSTD_compress(out.data(), out.size(), record.bytes.data(), record.bytes.size(), 3);
      ++sums.tried;
      sums.raw += record.bytes.size();
      sums.stored += ZSTD_isError(size) ? record.bytes.size() : std::min(size, record.bytes.size());
    }
  }

  static bool IsLargeAndCoded(const SampleRecord& record) {
    return IsEntropyCoded(record.encoding) && record.bytes.size() > kTinyRecord;
  }
  bool IsInVain(const SampleRecord& record) const {
    if (!IsLargeAndCoded(record)) return false;
    const auto found = sums_.find(record.encoding);
    return found != sums_.end() && found->second.stored > found->second.raw - found->second.raw / 50;
  }

 private:
  struct Sums {
    std::size_t tried = 0;
    std::uint64_t raw = 0, stored = 0;
  };
  std::map<Encoding, Sums> sums_;
};

// Takes records in the order of their hashes until they are enough.
class SampleSoFar {
 public:
  bool full() const { return full_; }
  std::vector<SampleRecord> records() { return std::move(records_); }

  // About what 32 MiB of records are made from.
  std::size_t RoundSize() const {
    if (records_.empty()) return kMinRound;
    const std::uint64_t mean = std::max<std::uint64_t>(bytes_ / records_.size(), 1);
    return std::clamp<std::uint64_t>(LowestHashes::kMaxBytes / 2 / mean, kMinRound, kMaxRound);
  }

  void Take(std::optional<SampleRecord> record) {
    if (full_ || !record) return;
    if (gain_ && gain_->IsInVain(*record)) return;
    bytes_ += record->bytes.size();
    if (bytes_ > LowestHashes::kMaxBytes && !records_.empty()) {
      full_ = true;
      return;
    }
    records_.push_back(std::move(*record));
    if (records_.size() != kEnoughWithoutGain || gain_) return;
    gain_.emplace(records_);
    full_ = std::all_of(records_.begin(), records_.end(), [&](const auto& r) { return gain_->IsInVain(r); });
  }

 private:
  static constexpr std::uint64_t kMinRound = 8, kMaxRound = 128;

  std::vector<SampleRecord> records_;
  std::uint64_t bytes_ = 0;
  std::optional<GainByEncoding> gain_;  // known after the first few
  bool full_ = false;
};

class Reader {
 public:
  Reader(const std::vector<std::unique_ptr<Source>>& sources, SampleWorker work)
      : sources_(sources), work_(std::move(work)) {}

  std::optional<SampleRecord> Read(const SampledInput& input) {
    try {
      if (input.bytes) return work_(*input.bytes);
      Source& source = *sources_[input.source];
      const PlannedInput planned = input.View();
      buffer_.resize(planned.size);
      try {
        source.Read(planned, buffer_.data());
      } catch (const OutOfResources& refused) {
        ThrowSystemError(refused.error, refused.doing, source.Describe(planned));
      } catch (const Error& error) {
        // Also what the system refuses of this file alone: packing names it as a bad input.
        if (error.code() == ErrorCode::kIo) return std::nullopt;
        throw;
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kBadInput || error.code() == ErrorCode::kNotFound) return std::nullopt;
      throw;
    }
    try {
      return work_(buffer_);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kBadInput) return std::nullopt;
      throw;
    }
  }

 private:
  const std::vector<std::unique_ptr<Source>>& sources_;
  SampleWorker work_;
  std::vector<std::byte> buffer_;
};

}  // namespace

PlannedInput SampledInput::View() const {
  PlannedInput view;
  view.key = key;
  view.key_skip = key_skip;
  view.source = source;
  view.size = size;
  view.sequence = sequence;
  view.locator = locator;
  return view;
}

void LowestHashes::Add(std::uint64_t hash, SampledInput input) {
  if (!Wants(hash)) return;
  const std::uint64_t size = input.size;
  auto id = std::make_pair(hash, std::to_string(input.source) + "/" + input.key);
  if (!inputs_.emplace(std::move(id), std::move(input)).second) return;
  bytes_ += size;
  while (inputs_.size() > kMaxInputs || (bytes_ > kMaxBytes && inputs_.size() > 1)) DropLast();
}

void LowestHashes::DropLast() {
  const auto last = std::prev(inputs_.end());
  cut_ = std::min(cut_, last->first.first);
  bytes_ -= last->second.size;
  inputs_.erase(last);
}

void LowestHashes::Add(LowestHashes other) {
  cut_ = std::min(cut_, other.cut_);
  while (!inputs_.empty() && !Wants(std::prev(inputs_.end())->first.first)) DropLast();
  for (auto& [id, input] : other.inputs_) Add(id.first, std::move(input));
}

void LowestHashes::CutTo(std::uint64_t bytes) {
  while (bytes_ > bytes && inputs_.size() > 1) DropLast();
}

std::vector<SampleRecord> WorkSample(const LowestHashes& sample, const std::vector<std::unique_ptr<Source>>& sources,
                                     const std::function<SampleWorker()>& make_worker, const std::atomic<bool>* stop) {
  std::vector<const SampledInput*> inputs;
  for (const auto& [id, input] : sample.inputs()) inputs.push_back(&input);
  std::vector<std::optional<SampleRecord>> worked(inputs.size());
  SampleSoFar so_far;
  // Rounds, for what becomes of an input may be many times its size. They do not change what is taken.
  for (std::size_t begin = 0; begin < inputs.size() && !so_far.full();) {
    const std::size_t end = begin + std::min(inputs.size() - begin, so_far.RoundSize());
    std::atomic<std::size_t> next{begin};
    ParallelFor(0, end - begin, 1, [&](std::uint64_t) {
      std::optional<Reader> reader;
      for (std::size_t i = next++; i < end; i = next++) {
        if (stop != nullptr && *stop) throw Interrupted{};
        if (!reader) reader.emplace(sources, make_worker());
        worked[i] = reader->Read(*inputs[i]);
      }
    });
    for (; begin < end; ++begin) so_far.Take(std::move(worked[begin]));
  }
  return so_far.records();
}

}  // namespace shardpack
