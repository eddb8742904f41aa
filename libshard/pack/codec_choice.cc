#include "libshard/pack/codec_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "libshard/pack/dictionary.h"
#include "libshard/store/compression.h"
#include "libshard/store/record_block.h"

namespace shardpack {
namespace {

constexpr int kDefaultLevel = 3;
// Of digits in blocks level 9 makes 160 bytes each in 4 times the time in which level 3 makes 172; level 19 makes 155
// in 110 times.
constexpr int kArchiveLevel = 9;
constexpr std::uint64_t kTinyBytes = 4096;
// Of large records a few say it all, and each costs milliseconds: no more is looked at once an encoding has this much.
constexpr std::uint64_t kEnoughBytes = 32 << 20;
// A record is stored compressed only where this share of its bytes is saved; an encoding is tried only where its sample
// saves it.
constexpr std::uint64_t kLeastGainPercent = 5;

// What a codec costs and brings is weighed in nanoseconds: a byte that need not be fetched is worth 5 (a 200 MB/s share
// of a disk or network), inflating costs what it does on one core of 2 GHz. A table, so that the choice is the same on
// every machine and in every run.
constexpr std::uint64_t kNsPerStoredByte = 5;
constexpr std::uint64_t kInflateNs = 1000;               // of a frame, and a nanosecond for each byte that comes out
constexpr std::uint64_t kInflateWithDictionaryNs = 200;  // its tables are there already

bool Gains(std::uint64_t raw_bytes, std::uint64_t stored_bytes) {
  // In 128 bits: the sums are of whole samples.
  using Wide = unsigned __int128;
  return Wide{stored_bytes} * 100 <= Wide{raw_bytes} * (100 - kLeastGainPercent);
}

bool IsForTiny(Codec codec) { return codec == Codec::kZstdDictionary || codec == Codec::kZstdBlock; }

// These hold pixels as they are or nearly so: tried even where the sample has none of them. All others are
// entropy-coded.
constexpr Encoding kPlainPixels[] = {Encoding::kBmp, Encoding::kTiff, Encoding::kPnm, Encoding::kPixels};

// The sample's records of one encoding that are alike in being tiny or not.
struct Group {
  Encoding encoding = Encoding::kUnknown;
  bool tiny = false;
  std::vector<Bytes> records;
  std::uint64_t raw_bytes = 0;
};

std::vector<Group> GroupsOf(const std::vector<SampleRecord>& sample, std::uint64_t tiny_bytes) {
  std::map<std::pair<Encoding, bool>, Group> groups;
  for (const SampleRecord& record : sample) {
    const bool tiny = record.bytes.size() <= tiny_bytes;
    Group& group = groups[{record.encoding, !tiny}];
    if (group.raw_bytes >= kEnoughBytes) continue;
    group.encoding = record.encoding;
    group.tiny = tiny;
    group.records.push_back(record.bytes);
    group.raw_bytes += record.bytes.size();
  }
  std::vector<Group> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

// As RecordCompressor would store them: each record compressed only where it gains.
std::uint64_t StoredBytes(const Group& group, Compressor& compressor) {
  std::uint64_t sum = 0;
  for (const Bytes record : group.records) {
    const std::uint64_t size = compressor.Compress(record).size();
    sum += Gains(record.size(), size) ? size : record.size();
  }
  return sum;
}

std::uint64_t DecodeNs(Codec codec, std::uint64_t raw_bytes) {
  switch (codec) {
    case Codec::kStored:
      return 0;
    case Codec::kZstd:
      return kInflateNs + raw_bytes;
    case Codec::kZstdDictionary:
      return kInflateWithDictionaryNs + raw_bytes;
    case Codec::kZstdBlock:
      break;
  }
  return kInflateNs + kBlockContentBytes;  // all of a block, for the one record that is asked for
}

struct Choice {
  Codec codec = Codec::kStored;
  std::uint64_t stored_bytes = 0;
};

class Chooser {
 public:
  Chooser(const std::vector<SampleRecord>& sample, Compression compression, CodecPlan& plan)
      : groups_(GroupsOf(sample, plan.tiny_bytes)), compression_(compression), plan_(plan), plain_(plan.level) {}

  // Trains on all tiny records that may be compressed, and keeps the dictionary where it pays.
  void AddDictionary(std::uint64_t total_records, std::uint64_t num_shards, std::optional<std::uint64_t> bytes);
  void Choose();

 private:
  void Add(const Group& group, const Choice& choice);
  std::uint64_t Cost(const Group& group, Choice choice) const {
    const std::uint64_t mean = group.raw_bytes / group.records.size();
    return choice.stored_bytes * kNsPerStoredByte + group.records.size() * DecodeNs(choice.codec, mean);
  }
  Choice Best(const Group& group);
  Choice Automatic(const Group& group);
  std::uint64_t BlockBytes(const Group& group);

  std::vector<Group> groups_;
  Compression compression_;
  CodecPlan& plan_;
  Compressor plain_;
  std::optional<Compressor> with_dictionary_;
};

void Chooser::AddDictionary(std::uint64_t total_records, std::uint64_t num_shards, std::optional<std::uint64_t> bytes) {
  std::vector<Bytes> tiny;
  std::uint64_t records = 0;
  for (const Group& group : groups_) {
    records += group.records.size();
    if (group.tiny) tiny.insert(tiny.end(), group.records.begin(), group.records.end());
  }
  if (tiny.empty()) return;
  using Wide = unsigned __int128;
  const auto tiny_records = static_cast<std::uint64_t>(Wide{total_records} * tiny.size() / records);
  plan_.dictionary = ChooseDictionary(tiny, plan_.level, tiny_records, num_shards, bytes);
  if (!plan_.dictionary.empty()) with_dictionary_.emplace(plan_.level, plan_.dictionary);
}

// Of what may be used the cheapest; where two cost the same, the simpler.
Choice Chooser::Automatic(const Group& group) {
  Choice best{Codec::kStored, group.raw_bytes};
  const auto offer = [&](Codec codec, Compressor& compressor) {
    const Choice offered{codec, StoredBytes(group, compressor)};
    if (Gains(group.raw_bytes, offered.stored_bytes) && Cost(group, offered) < Cost(group, best)) best = offered;
  };
  offer(Codec::kZstd, plain_);
  if (group.tiny && with_dictionary_) offer(Codec::kZstdDictionary, *with_dictionary_);
  return best;
}

// In blocks as they would be made of the sample alone.
std::uint64_t Chooser::BlockBytes(const Group& group) {
  std::uint64_t stored = 0;
  std::vector<std::byte> block;
  const auto close = [&] {
    if (!block.empty()) stored += plain_.Compress(block).size();
    block.clear();
  };
  for (const Bytes record : group.records) {
    if (block.size() + record.size() > kBlockContentBytes) close();
    block.insert(block.end(), record.begin(), record.end());
  }
  close();
  return stored;
}

Choice Chooser::Best(const Group& group) {
  switch (compression_) {
    case Compression::kAuto:
      return Automatic(group);
    case Compression::kNone:
      break;
    case Compression::kZstd: {
      const Choice zstd{Codec::kZstd, StoredBytes(group, plain_)};
      if (!group.tiny || !with_dictionary_) return zstd;
      const Choice words{Codec::kZstdDictionary, StoredBytes(group, *with_dictionary_)};
      return words.stored_bytes < zstd.stored_bytes ? words : zstd;
    }
    case Compression::kArchive:
      if (group.tiny) return {Codec::kZstdBlock, BlockBytes(group)};
      return {Codec::kZstd, StoredBytes(group, plain_)};
  }
  return {Codec::kStored, group.raw_bytes};
}

void Chooser::Add(const Group& group, const Choice& choice) {
  CodecReceipt receipt;
  receipt.encoding = Name(group.encoding);
  receipt.codec = Name(choice.codec);
  receipt.sample_records = group.records.size();
  receipt.sample_raw_bytes = group.raw_bytes;
  receipt.sample_stored_bytes = choice.stored_bytes;
  receipt.decode_ns_per_record = DecodeNs(choice.codec, group.raw_bytes / group.records.size());
  plan_.receipts.push_back(std::move(receipt));
  plan_.rules.push_back({group.encoding, choice.codec});
}

// A rule for tiny records alone stands before that for all others of the encoding. Where no codec for them alone is
// chosen, one rule is for all, and all choose it.
void Chooser::Choose() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    const bool both = i + 1 < groups_.size() && groups_[i + 1].encoding == group.encoding;
    const Choice choice = Best(group);
    if (both && !IsForTiny(choice.codec)) {
      Group& all = groups_[i + 1];
      all.records.insert(all.records.end(), group.records.begin(), group.records.end());
      all.raw_bytes += group.raw_bytes;
      continue;
    }
    Add(group, choice);
  }
}

}  // namespace

Codec CodecPlan::CodecFor(Encoding encoding, std::uint64_t raw_bytes) const {
  const bool tiny = raw_bytes <= tiny_bytes;
  for (const Rule& rule : rules) {
    if (rule.encoding == encoding && (tiny || !IsForTiny(rule.codec))) return rule.codec;
  }
  return tiny || !IsForTiny(fallback) ? fallback : Codec::kZstd;
}

CodecPlan ChooseCodecs(const std::vector<SampleRecord>& sample, std::uint64_t total_records, std::uint64_t num_shards,
                       Compression compression, std::optional<int> zstd_level,
                       std::optional<std::uint64_t> dictionary_bytes) {
  CodecPlan plan;
  plan.level = zstd_level.value_or(compression == Compression::kArchive ? kArchiveLevel : kDefaultLevel);
  plan.tiny_bytes = kTinyBytes;
  Chooser chooser(sample, compression, plan);
  if (compression == Compression::kAuto || compression == Compression::kZstd)
    chooser.AddDictionary(total_records, num_shards, dictionary_bytes);
  chooser.Choose();
  if (compression == Compression::kAuto) {
    for (const Encoding encoding : kPlainPixels) {
      const bool decided = std::any_of(plan.rules.begin(), plan.rules.end(), [&](const CodecPlan::Rule& rule) {
        return rule.encoding == encoding && !IsForTiny(rule.codec);
      });
      if (!decided) plan.rules.push_back({encoding, Codec::kZstd});
    }
  } else if (compression == Compression::kZstd) {
    plan.fallback = Codec::kZstd;
  } else if (compression == Compression::kArchive) {
    plan.fallback = Codec::kZstdBlock;
  }
  const bool uses_dictionary = std::any_of(plan.rules.begin(), plan.rules.end(), [](const CodecPlan::Rule& rule) {
    return rule.codec == Codec::kZstdDictionary;
  });
  if (!uses_dictionary) plan.dictionary.clear();
  return plan;
}

struct RecordCompressor::Impl {
  explicit Impl(const CodecPlan& codec_plan) : plan(codec_plan), plain(plan.level) {
    if (!plan.dictionary.empty()) with_dictionary.emplace(plan.level, plan.dictionary);
  }

  // Appends the frame, or nothing where it does not gain; says which.
  bool TryOn(Bytes raw, Compressor& compressor, std::vector<std::byte>& out) const {
    const Bytes frame = compressor.Compress(raw);
    const bool gains = Gains(raw.size(), frame.size());
    if (gains) out.insert(out.end(), frame.begin(), frame.end());
    return gains;
  }

  const CodecPlan& plan;
  Compressor plain;
  std::optional<Compressor> with_dictionary;
};

RecordCompressor::RecordCompressor(const CodecPlan& plan) : impl_(std::make_unique<Impl>(plan)) {}
RecordCompressor::~RecordCompressor() = default;

Codec RecordCompressor::Compress(Encoding encoding, Bytes raw, std::vector<std::byte>& out) {
  const Codec codec = impl_->plan.CodecFor(encoding, raw.size());
  if (codec == Codec::kStored || codec == Codec::kZstdBlock) return codec;
  if (codec == Codec::kZstd || !impl_->with_dictionary) return CompressAlone(raw, out);
  return impl_->TryOn(raw, *impl_->with_dictionary, out) ? codec : Codec::kStored;
}

Codec RecordCompressor::CompressAlone(Bytes raw, std::vector<std::byte>& out) {
  return impl_->TryOn(raw, impl_->plain, out) ? Codec::kZstd : Codec::kStored;
}

std::size_t RecordCompressor::CompressBlock(std::span<const RecordToWrite> records, std::vector<std::byte>& out) {
  return EncodeBlock(records, impl_->plain, out);
}

}  // namespace shardpack
