#include "libshard/pack/dictionary.h"

#define ZDICT_STATIC_LINKING_ONLY  // the trainer whose parameters can be fixed
#include <zdict.h>

#include <algorithm>

#include "libshard/store/compression.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kSizes[] = {4 << 10, 16 << 10, 32 << 10, 64 << 10, 110 << 10};
constexpr std::uint64_t kCopies = 2;  // in each shard: in the index and before the first record
constexpr std::size_t kFewestRecords = 16;

// Long segments: what tiny records share are whole headers and runs, not words. With k = 64 32x32 JPEGs need 15 % more.
ZDICT_fastCover_params_t Parameters(int level) {
  ZDICT_fastCover_params_t parameters{};
  parameters.k = 800;
  parameters.d = 6;
  parameters.f = 20;
  parameters.accel = 1;
  parameters.splitPoint = 1.0;
  parameters.zParams.compressionLevel = level;
  return parameters;
}

struct TrainingData {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> sizes;
};

// Empty where zstd cannot learn from so little.
std::vector<std::byte> Train(const TrainingData& data, int level, std::uint64_t size) {
  std::vector<std::byte> dictionary(size);
  const std::size_t made =
      ZDICT_trainFromBuffer_fastCover(dictionary.data(), dictionary.size(), data.bytes.data(), data.sizes.data(),
                                      static_cast<unsigned>(data.sizes.size()), Parameters(level));
  dictionary.resize(ZDICT_isError(made) ? 0 : made);
  return dictionary;
}

std::uint64_t StoredBytes(const std::vector<Bytes>& records, Compressor& compressor) {
  std::uint64_t sum = 0;
  for (const Bytes record : records) sum += std::min<std::uint64_t>(record.size(), compressor.Compress(record).size());
  return sum;
}

}  // namespace

std::vector<std::byte> ChooseDictionary(const std::vector<Bytes>& sample, int level, std::uint64_t total_records,
                                        std::uint64_t num_shards, std::optional<std::uint64_t> bytes) {
  if (bytes == 0u) return {};
  if (bytes && *bytes < ZDICT_DICTSIZE_MIN)
    throw Error(ErrorCode::kInvalidArgument, "a zstd dictionary has 256 bytes at least");
  if (sample.size() < kFewestRecords) return {};
  TrainingData data;
  std::vector<Bytes> judges;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (i % 2 == 1) {
      judges.push_back(sample[i]);
      continue;
    }
    data.bytes.insert(data.bytes.end(), sample[i].begin(), sample[i].end());
    data.sizes.push_back(sample[i].size());
  }
  if (bytes) return Train(data, level, *bytes);

  using Wide = unsigned __int128;
  Compressor plain(level);
  const Wide without = StoredBytes(judges, plain);
  Wide most = 0;  // bytes saved in the whole dataset
  std::vector<std::byte> best;
  for (const std::uint64_t size : kSizes) {
    if (size > data.bytes.size() / 2) break;  // it would learn the sample by heart
    std::vector<std::byte> dictionary = Train(data, level, size);
    if (dictionary.empty()) continue;
    Compressor compressor(level, dictionary);
    const Wide with = StoredBytes(judges, compressor);
    const Wide saved = with < without ? (without - with) * total_records / judges.size() : 0;
    const Wide spent = Wide{dictionary.size()} * kCopies * num_shards;
    if (saved <= spent || saved - spent <= most) continue;
    most = saved - spent;
    best = std::move(dictionary);
  }
  return best;
}

}  // namespace shardpack
