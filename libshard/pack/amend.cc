#include <algorithm>
#include <charconv>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include "libshard/pack/drop_list.h"
#include "libshard/pack/image_work.h"
#include "libshard/pack/output_folder.h"
#include "libshard/pack/shard_rewrite.h"
#include "libshard/pack/shared_progress.h"
#include "libshard/pack/task_arena.h"
#include "libshard/store/content_counts.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "shardpack/threads.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kStretch = 65536;  // records between two looks at `stop`

void CheckStop(const AmendOptions& options) {
  if (options.stop != nullptr && *options.stop) throw Interrupted{};
}

// What one look at all indexes finds.
struct Found {
  std::vector<std::vector<std::uint64_t>> dropped;  // by shard: record numbers, ascending
  std::uint64_t records = 0;
  std::vector<std::string> unknown;  // keys that no record has; the first few
  std::uint64_t num_unknown = 0;
  std::uint64_t raw_bytes = 0, dropped_raw_bytes = 0;  // of the encoded images of all records, and of the dropped ones
};

Found Find(const Dataset& dataset, const DropList& list, const AmendOptions& options) {
  SharedProgress progress(options.progress, "looking", dataset.size(), 0);
  const std::unordered_set<std::string_view> wanted(list.keys.begin(), list.keys.end());
  std::unordered_set<std::string_view> known;
  Found found;
  found.dropped.resize(dataset.num_shards());
  for (std::uint32_t s = 0; s < dataset.num_shards(); ++s) {
    const ShardReader& shard = dataset.shard(s);
    for (std::uint64_t i = 0; i < shard.num_records(); ++i) {
      if (i % kStretch == 0) CheckStop(options);
      const std::string_view key = shard.Key(i);
      const std::uint64_t raw_bytes = shard.Info(i).raw_bytes;
      found.raw_bytes += raw_bytes;
      if (!wanted.contains(key)) continue;
      known.insert(key);
      found.dropped[s].push_back(i);
      found.dropped_raw_bytes += raw_bytes;
      ++found.records;
    }
    progress.Add(shard.num_records(), 0);
  }
  found.num_unknown = list.keys.size() - known.size();
  for (const std::string& key : list.keys) {
    if (found.unknown.size() == AmendResult::kNamedUnknown) break;
    if (!known.contains(key)) found.unknown.push_back(key);
  }
  return found;
}

// Of the shard's name; `otherwise` where it has none.
std::uint64_t NumberOf(const std::string& file, std::uint64_t otherwise) {
  if (!IsShardFileName(file)) return otherwise;
  constexpr std::size_t kDigits = 6;  // after "shard-"
  std::uint64_t number = otherwise;
  std::from_chars(file.data() + kDigits, file.data() + file.size(), number);
  return number;
}

int ZstdLevelOf(const Manifest& manifest) {
  const auto compression = manifest.options.find("compression");
  const bool archive = compression != manifest.options.end() && compression->second == "archive";
  const auto option = manifest.options.find("zstd-level");
  int level = archive ? 9 : 3;  // as ChooseCodecs() does where none is given
  if (option != manifest.options.end())
    std::from_chars(option->second.data(), option->second.data() + option->second.size(), level);
  return std::clamp(level, 1, 22);
}

class Amendment {
 public:
  explicit Amendment(const AmendOptions& options)
      : options_(options),
        list_(ReadDropList(options.ledger)),
        folder_(options.dataset.filename() == kManifestName ? options.dataset.parent_path() : options.dataset) {
    if (list_.keys.empty())
      throw Error(ErrorCode::kBadInput, Location{options.ledger.native(), {}, {}}, "names no record by its key");
    CheckKind(Manifest::Load(folder_));  // before anything is created
  }

  AmendResult Run() {
    WorkFolder work(folder_);
    const Dataset dataset = Dataset::Open(folder_);  // under the lock
    CheckKind(dataset.manifest());
    dataset.CheckShards();
    const Found found = Find(dataset, list_, options_);
    AmendResult result;
    result.not_found = found.num_unknown;
    result.unknown_keys = found.unknown;
    result.lines_without_key = list_.lines_without_key;
    if (found.records == 0) {
      CheckDoneBefore(dataset.manifest(), found);
      RemoveUnnamedShards(folder_, dataset.manifest());  // left by a run that was killed after its commit
      result.manifest = dataset.manifest();
      result.already_complete = true;
      return result;
    }
    if (found.records == dataset.size()) {
      throw Error(ErrorCode::kInvalidArgument, "the ledger names every record of " + Escaped(folder_.native()) +
                                                   ": nothing would be left; remove the folder instead");
    }
    result.dropped = found.records;
    result.manifest = dataset.manifest();
    try {
      Rewrite(dataset, found, work, result);
      Recount(dataset, found, result);
      work.SyncOutput();
      CheckStop(options_);
      result.manifest.Commit(folder_);
    } catch (...) {
      // What was moved and not named. The manifest is read again, for the commit may be done.
      try {
        RemoveUnnamedShards(folder_, Manifest::Load(folder_));
      } catch (const Error&) {
      }
      throw;
    }
    RemoveUnnamedShards(folder_, result.manifest);
    return result;
  }

 private:
  static void CheckKind(const Manifest& manifest) {
    if (manifest.format == "record") return;
    throw Error(ErrorCode::kUnsupported, "only datasets of record shards are amended; this one is " +
                                             Escaped(manifest.format) + ": convert it anew without these inputs");
  }

  void CheckDoneBefore(const Manifest& manifest, const Found& found) const {
    const auto is_this = [&](const Revision& revision) {
      return revision.command == "amend" && revision.request == list_.Digest();
    };
    if (std::any_of(manifest.revisions.begin(), manifest.revisions.end(), is_this)) return;
    throw Error(ErrorCode::kBadInput, Location{options_.ledger.native(), {}, {}},
                "none of its keys is in the dataset (the first: " + Escaped(found.unknown.front()) + ")");
  }

  void Rewrite(const Dataset& dataset, const Found& found, WorkFolder& work, AmendResult& result) {
    std::vector<std::uint32_t> touched;
    std::uint64_t records = 0, bytes = 0;
    for (std::uint32_t s = 0; s < dataset.num_shards(); ++s) {
      const ShardEntry& entry = dataset.manifest().shards[s];
      if (found.dropped[s].empty() || found.dropped[s].size() == entry.records) continue;
      touched.push_back(s);
      records += entry.records;
      bytes += entry.bytes;
    }
    SharedProgress progress(options_.progress, "amending", records, bytes);
    ArenaOf(AvailableThreads()).execute([&] {
      ParallelFor(0, touched.size(), 1, [&](std::uint64_t t) {
        const std::uint32_t s = touched[t];
        ShardRewrite rewrite;
        rewrite.output = work.PartialPath(s);
        rewrite.zstd_level = ZstdLevelOf(dataset.manifest());
        rewrite.stop = options_.stop;
        rewrite.progress = [&](std::uint64_t n, std::uint64_t b) { progress.Add(n, b); };
        result.manifest.shards[s] = WriteOne(dataset.shard(s), found.dropped[s], rewrite);
      });
    });
    std::vector<ShardEntry> left;
    for (std::uint32_t s = 0; s < dataset.num_shards(); ++s) {
      if (found.dropped[s].size() == dataset.manifest().shards[s].records && !found.dropped[s].empty()) continue;
      ShardEntry& entry = result.manifest.shards[s];
      if (!found.dropped[s].empty()) {
        entry.file = ShardFileName(NumberOf(dataset.manifest().shards[s].file, s), entry.digest);
        CheckNameIsFree(dataset.manifest(), entry.file);
        work.Publish(s, entry.file);
        ++result.shards_rewritten;
      }
      left.push_back(std::move(entry));
    }
    result.shards_removed = result.manifest.shards.size() - left.size();
    result.manifest.shards = std::move(left);
  }

  static ShardEntry WriteOne(const ShardReader& shard, const std::vector<std::uint64_t>& dropped,
                             const ShardRewrite& rewrite) {
    try {
      const ShardSummary summary = WriteWithout(shard, dropped, rewrite);
      return {"", summary.records, summary.bytes, summary.file_digest, summary.index_digest};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorruption) throw;
      throw Error(error.code(), error.where(),
                  error.reason() + " in a record that is to stay: name it in the ledger too, or repair the shard");
    }
  }

  // Two shards of one number in a dataset of strange names, and 32 equal bits of their digests: never over an old
  // shard.
  static void CheckNameIsFree(const Manifest& manifest, const std::string& file) {
    for (const ShardEntry& entry : manifest.shards) {
      if (entry.file == file) throw Error(ErrorCode::kCorruption, "the new shard would have the name of " + file);
    }
  }

  // From the indexes of what is there now, not by subtracting: so the new shards' indexes are read before they count.
  void Recount(const Dataset& dataset, const Found& found, AmendResult& result) {
    Manifest& manifest = result.manifest;
    ContentCounts counts;
    manifest.records = manifest.bytes_out = 0;
    for (const ShardEntry& entry : manifest.shards) {
      counts.Add(ShardReader::Open(folder_ / entry.file));
      manifest.records += entry.records;
      manifest.bytes_out += entry.bytes;
    }
    counts.Finish(manifest);
    manifest.bytes_in -= BytesInOf(manifest, found);
    if (manifest.statistics) SubtractStatistics(dataset, found, result);
    manifest.revisions.push_back({"amend", list_.Digest(), found.records});
  }

  // A record does not say how large its input was. Where images are kept, it was as large as the record; else its share
  // is taken, by the sizes of the encoded images.
  static std::uint64_t BytesInOf(const Manifest& manifest, const Found& found) {
    if (manifest.bytes_in == found.raw_bytes || found.raw_bytes == 0)
      return std::min(found.dropped_raw_bytes, manifest.bytes_in);
    using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{manifest.bytes_in} * found.dropped_raw_bytes / found.raw_bytes);
  }

  // Sums over all pictures lose those that are dropped, which must be decoded for it. Where only a sample was summed
  // up, or a picture is damaged, the sums are given up.
  void SubtractStatistics(const Dataset& dataset, const Found& found, AmendResult& result) {
    std::optional<ChannelSums>& statistics = result.manifest.statistics;
    if (statistics->pictures != dataset.size()) {
      statistics.reset();
    } else {
      try {
        const ChannelSums sums = SumsOfDropped(dataset, found);
        statistics->pictures -= sums.pictures;
        statistics->pixels -= sums.pixels;
        for (std::size_t c = 0; c < 3; ++c) {
          statistics->sum[c] -= sums.sum[c];
          statistics->sum_of_squares[c] -= sums.sum_of_squares[c];
        }
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCorruption && error.code() != ErrorCode::kBadInput) throw;
        statistics.reset();
      }
    }
    result.statistics_given_up = !statistics;
  }

  ChannelSums SumsOfDropped(const Dataset& dataset, const Found& found) {
    ImageWorkOptions work;
    work.verify = VerifyImages::kNone;
    work.statistics = true;
    work.limits.max_pixels = ~std::uint64_t{0} >> 8;  // they were let in when they were packed
    std::mutex one_at_a_time;
    ImageWorker worker(work, one_at_a_time);
    std::vector<std::byte> bytes;
    ChannelSums sums;
    for (std::uint32_t s = 0; s < dataset.num_shards(); ++s) {
      for (const std::uint64_t i : found.dropped[s]) {
        CheckStop(options_);
        dataset.shard(s).Read(i, bytes);
        const ChannelSums one = worker.Work(bytes).sums;
        sums.pictures += one.pictures;
        sums.pixels += one.pixels;
        for (std::size_t c = 0; c < 3; ++c) {
          sums.sum[c] += one.sum[c];
          sums.sum_of_squares[c] += one.sum_of_squares[c];
        }
      }
    }
    return sums;
  }

  const AmendOptions& options_;
  const DropList list_;
  const fs::path folder_;
};

}  // namespace

AmendResult Amend(const AmendOptions& options) { return Amendment(options).Run(); }

}  // namespace shardpack
