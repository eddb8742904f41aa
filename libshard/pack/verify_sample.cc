#include "libshard/pack/verify_sample.h"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>
#include <numeric>
#include <tuple>

#include "libshard/pack/task_arena.h"
#include "libshard/store/coding.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostSampleParts = 4096;
constexpr std::uint64_t kStretch = 512;  // records between two looks at the clock
constexpr double kConfidence = 0.95;

std::uint64_t Draw(std::uint64_t seed, std::uint64_t what, std::uint64_t number) {
  std::byte text[24];
  Store(text, seed);
  Store(text + 8, what);
  Store(text + 16, number);
  return Xxh3_64(text);
}

// A step through [0, n) that comes to each number.
std::uint64_t StepThrough(std::uint64_t n, std::uint64_t random) {
  std::uint64_t step = n < 2 ? 1 : 1 + random % (n - 1);
  while (std::gcd(step, n) != 1) ++step;
  return step % std::max<std::uint64_t>(n, 1);
}

std::uint64_t Walk(std::uint64_t n, std::uint64_t start, std::uint64_t step, std::uint64_t k) {
  using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{step} * k + start) % n);
}

// log of the probability of at most `damaged` among `sampled` where a share p is damaged.
double LogProbability(std::uint64_t sampled, std::uint64_t damaged, double p) {
  const double n = static_cast<double>(sampled);
  double sum = 0, largest = -1e300;
  std::vector<double> terms;
  for (std::uint64_t k = 0; k <= damaged; ++k) {
    const double x = static_cast<double>(k);
    terms.push_back(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(p) +
                    (n - x) * std::log1p(-p));
    largest = std::max(largest, terms.back());
  }
  for (const double term : terms) sum += std::exp(term - largest);
  return largest + std::log(sum);
}

}  // namespace

SampleOrder::SampleOrder(std::uint64_t records, std::uint64_t seed)
    : records_(records), seed_(seed), parts_(std::min(records, kMostSampleParts)) {
  order_step_ = StepThrough(parts_, Draw(seed, 0, 0));
  order_start_ = parts_ == 0 ? 0 : Draw(seed, 0, 1) % parts_;
}

// Parts are of equal size, to one record: those that have one more come first in the last round.
std::uint64_t SampleOrder::operator[](std::uint64_t k) const {
  const std::uint64_t least = records_ / parts_, larger = records_ % parts_, round = k / parts_;
  std::uint64_t part = 0;
  if (round < least) {
    part = Walk(parts_, order_start_, order_step_, k % parts_);
  } else {
    part = k - least * parts_;  // the larger ones are the first
  }
  const std::uint64_t begin = part * least + std::min(part, larger), size = least + (part < larger ? 1 : 0);
  const std::uint64_t step = StepThrough(size, Draw(seed_, 1, part)), start = Draw(seed_, 2, part) % size;
  return begin + (size == 1 ? 0 : Walk(size, start, step, round));
}

double DamagedShareBound(std::uint64_t sampled, std::uint64_t damaged, double confidence) {
  if (sampled == 0 || damaged >= sampled) return 1;
  if (damaged == 0) return -std::expm1(std::log1p(-confidence) / static_cast<double>(sampled));
  double low = 0, high = 1;
  for (int i = 0; i < 200; ++i) {
    const double p = (low + high) / 2;
    (LogProbability(sampled, damaged, p) > std::log1p(-confidence) ? low : high) = p;
  }
  return high;
}

namespace {

class Sampling {
 public:
  Sampling(const std::filesystem::path& path, const VerifyOptions& options, VerifyResult& result)
      : options_(options),
        result_(result),
        end_(Clock::now() + *options.budget),
        dataset_(Dataset::Open(path)),
        decoders_([limits = options.limits] { return ImageDecoder(limits); }) {}

  void Run() {
    OpenShards();
    const SampleOrder order(dataset_.size(), dataset_.digest().low);
    PackProgress progress;
    progress.stage = "verifying a sample";
    progress.inputs_total = order.size();
    VerifyResult::Sample sample;
    sample.of = order.size();
    sample.confidence = kConfidence;
    for (std::uint64_t begin = 0; begin < order.size() && Clock::now() < end_; begin += kStretch) {
      if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
      const std::uint64_t end = std::min(order.size(), begin + kStretch);
      ParallelFor(begin, end, 8, [&](std::uint64_t k) { Check(order[k]); });
      sample.records = progress.inputs_done = end;
      progress.bytes_done = result_.bytes;
      if (options_.progress) options_.progress(progress);
    }
    sample.damaged = damaged_;
    sample.damaged_share_bound =
        sample.records == sample.of
            ? (sample.of == 0 ? 0 : static_cast<double>(damaged_) / static_cast<double>(sample.of))
            : DamagedShareBound(sample.records, damaged_, kConfidence);
    result_.sample = sample;
    std::stable_sort(result_.faults.begin(), result_.faults.end(), [](const VerifyFault& a, const VerifyFault& b) {
      return std::tie(a.shard, a.offset, a.record) < std::tie(b.shard, b.offset, b.record);
    });
  }

 private:
  // Header, footer and tables of all, which is little.
  void OpenShards() {
    ParallelFor(0, dataset_.num_shards(), 1, [&](std::uint64_t s) {
      const std::string& file = dataset_.manifest().shards[s].file;
      try {
        dataset_.shard(static_cast<std::uint32_t>(s));
      } catch (const Error& error) {
        Add({file, {}, {}, error.where().offset.value_or(0), "open", error.reason()});
      }
    });
  }

  void Check(std::uint64_t index) {
    const Dataset::Place place = dataset_.PlaceOf(index);
    const std::string& file = dataset_.manifest().shards[place.shard].file;
    VerifyFault fault{file, place.record, {}, 0, "checksum", ""};
    try {
      const ShardReader& shard = dataset_.shard(place.shard);
      fault.key = std::string(shard.Key(place.record));
      fault.offset = shard.Info(place.record).offset;
      thread_local std::vector<std::byte> bytes;
      shard.Read(place.record, bytes);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++result_.records;
        result_.bytes += shard.Info(place.record).stored_bytes;
      }
      if (!options_.decode) return;
      fault.kind = "decode";
      thread_local Image picture;
      decoders_.local().Decode(bytes, picture);
      return;
    } catch (const Error& error) {
      fault.message = error.reason();
    } catch (const std::bad_alloc&) {
      fault.message = "not enough memory to decode it";
    }
    Add(std::move(fault));
    const std::lock_guard<std::mutex> lock(mutex_);
    ++damaged_;
  }

  void Add(VerifyFault fault) {
    const std::lock_guard<std::mutex> lock(mutex_);
    result_.faults.push_back(std::move(fault));
  }

  const VerifyOptions& options_;
  VerifyResult& result_;
  const Clock::time_point end_;
  const Dataset dataset_;
  tbb::enumerable_thread_specific<ImageDecoder> decoders_;
  std::mutex mutex_;
  std::uint64_t damaged_ = 0;
};

}  // namespace

void VerifySample(const std::filesystem::path& path, const VerifyOptions& options, VerifyResult& result) {
  try {
    Sampling(path, options, result).Run();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) throw;
    const bool is_dataset = std::filesystem::is_directory(path) || path.filename() == kManifestName;
    result.faults.push_back({is_dataset ? kManifestName : path.filename().native(),
                             {},
                             {},
                             error.where().offset.value_or(0),
                             is_dataset ? "manifest" : "open",
                             error.reason()});
  }
}

}  // namespace shardpack
