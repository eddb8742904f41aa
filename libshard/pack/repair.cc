#include <fcntl.h>
#include <tbb/enumerable_thread_specific.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>

#include "libshard/pack/repair_neighbours.h"
#include "libshard/pack/repair_record.h"
#include "libshard/pack/repair_scan.h"
#include "libshard/pack/task_arena.h"
#include "libshard/store/record_block.h"
#include "libshard/store/record_format.h"
#include "libshard/store/record_scan.h"
#include "libshard/store/replace_file.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "shardpack/threads.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

// Units that are made at once, by all threads.
constexpr std::size_t kBatchUnits = 256;
constexpr std::uint64_t kBatchBytes = 32 << 20;
constexpr std::size_t kTriedUnits = 8;  // by which a dictionary is known

std::string Number(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Gives the new file its name, where nothing has it.
void Publish(const fs::path& partial, const fs::path& output) {
  if (link(partial.c_str(), output.c_str()) == 0) {
    unlink(partial.c_str());
    return;
  }
  if (errno == EEXIST) ThrowSystemError(errno, "create", output.native());
  // A file system without links.
  if (access(output.c_str(), F_OK) == 0) ThrowSystemError(EEXIST, "create", output.native());
  if (rename(partial.c_str(), output.c_str()) != 0) ThrowSystemError(errno, "create", output.native());
}

class ShardRepair {
 public:
  explicit ShardRepair(const RepairOptions& options)
      : options_(options), shard_(options.shard), neighbours_(options.shard) {
    progress_.stage = "repairing";
    progress_.bytes_total = shard_.bytes().size() * 2;  // looked through, then written
  }

  RepairResult Run() {
    const fs::path& output = options_.output;
    if (fs::exists(fs::symlink_status(output))) {
      throw Error(ErrorCode::kInvalidArgument,
                  "the output " + Escaped(output.native()) + " exists: nothing is overwritten; name another file");
    }
    units_ = shard_.Units([&](std::uint64_t bytes) { Advance(bytes); });
    result_.index_was_whole = shard_.index_is_whole();
    dictionary_bytes_ = FindTheDictionary();
    if (!dictionary_bytes_.empty()) dictionary_ = std::make_unique<DecompressionDictionary>(dictionary_bytes_);

    const fs::path partial = output.native() + ".partial";
    const std::vector<std::vector<std::string>> names = ClassNames();
    for (std::size_t n = 0; n < names.size(); ++n) {
      Write(partial, names[n]);
      // Only the manifest tells lists apart that differ in their length: after an append with new classes.
      if (neighbours_.entry() == nullptr || result_.summary.file_digest == neighbours_.entry()->digest) break;
      if (n + 1 == names.size() && n > 0) Write(partial, names[0]);
    }
    Conclude(partial);
    return std::move(result_);
  }

 private:
  void Advance(std::uint64_t bytes) {
    if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
    progress_.bytes_done = std::min(progress_.bytes_done + bytes, progress_.bytes_total);
    if (options_.progress) options_.progress(progress_);
  }

  std::vector<std::byte> FindTheDictionary() {
    if (shard_.index() != nullptr) {
      try {
        const Bytes section = shard_.index()->Dictionary();
        return {section.begin(), section.end()};
      } catch (const Error&) {
        // There is a copy before the first record.
      }
    }
    const Bytes copy = FindDictionary(shard_.bytes(), shard_.sync_marker());
    if (!copy.empty()) return {copy.begin(), copy.end()};
    std::vector<RepairUnit> tried;
    for (const RepairUnit& unit : units_) {
      if (!unit.good || unit.codec != static_cast<std::uint8_t>(Codec::kZstdDictionary)) continue;
      if (tried.size() < kTriedUnits) tried.push_back(unit);
    }
    return tried.empty() ? std::vector<std::byte>() : neighbours_.Dictionary(tried);
  }

  std::vector<std::vector<std::string>> ClassNames() {
    if (shard_.index() != nullptr) {
      try {
        return {shard_.index()->class_names()};
      } catch (const Error&) {
        // Then as without an index.
      }
    }
    std::vector<std::vector<std::string>> names = neighbours_.ClassNames();
    if (!names.empty()) return names;
    result_.notes.push_back("the class names, if it had any, are lost: labels are there as numbers");
    return {{}};
  }

  void Write(const fs::path& partial, const std::vector<std::string>& class_names) {
    result_.records = 0;
    result_.losses.clear();
    keys_.clear();
    not_probed_ = 0;
    expected_ = 0;
    place_ = shard_.bytes().size() < kHeaderBytes ? shard_.bytes().size() : kHeaderBytes;
    ShardWriterOptions writer_options;
    writer_options.sync_marker = shard_.sync_marker();
    writer_options.class_names = class_names;
    writer_options.dictionary = dictionary_bytes_;
    ShardWriter writer(partial, std::move(writer_options));
    ArenaOf(options_.threads > 0 ? options_.threads : AvailableThreads()).execute([&] { WriteUnits(writer); });
    LoseTheRest();
    if (result_.records == 0 && !(result_.index_was_whole && units_.empty())) {
      throw Error(ErrorCode::kCorruption, Location{options_.shard.native(), {}, {}},
                  "no record of it can be brought back");
    }
    result_.summary = writer.Finish();
  }

  void WriteUnits(ShardWriter& writer) {
    const bool kept = neighbours_.manifest() != nullptr && KeepsImages(*neighbours_.manifest());
    const RebuildContext context{shard_, dictionary_.get(), !kept};
    tbb::enumerable_thread_specific<RecordRebuilder> rebuilders([&] { return RecordRebuilder(context); });
    std::vector<RebuiltUnit> batch;
    for (std::size_t begin = 0; begin < units_.size();) {
      std::size_t end = begin;
      for (std::uint64_t bytes = 0; end < units_.size() && end - begin < kBatchUnits && bytes < kBatchBytes; ++end)
        bytes += units_[end].payload.size();
      batch.resize(end - begin);
      ParallelFor(begin, end, 1, [&](std::uint64_t u) { rebuilders.local().Rebuild(units_[u], batch[u - begin]); });
      for (std::size_t u = begin; u < end; ++u) {
        const std::uint64_t next = u + 1 < units_.size() ? units_[u + 1].number : units_[u].number + 1;
        Take(units_[u], batch[u - begin], next, writer);
        Advance(units_[u].end - units_[u].begin);
      }
      begin = end;
    }
  }

  static bool KeepsImages(const Manifest& manifest) {
    const auto images = manifest.options.find("images");
    return images != manifest.options.end() && images->second == "keep";
  }

  // `next`: the number of the unit that follows.
  void Take(const RepairUnit& unit, const RebuiltUnit& made, std::uint64_t next, ShardWriter& writer) {
    if (unit.number < expected_) return;  // what a block holds already
    LoseUpTo(unit.number, unit.begin);
    if (!made.loss.empty()) return LoseUnit(unit, std::max(next, unit.number + 1), made.loss);
    std::vector<RecordToWrite> records;
    for (std::size_t r = 0; r < made.records.size(); ++r) {
      const RecordToWrite& record = made.records[r];
      if (!keys_.emplace(record.key).second) {
        Lose({unit.begin, unit.end - unit.begin, unit.number + r, std::string(record.key), "its key came before"});
        continue;
      }
      if (!made.probed[r]) ++not_probed_;
      records.push_back(record);
    }
    const bool block = !made.records.empty() && made.records[0].info.codec == Codec::kZstdBlock;
    if (!block) {
      for (const RecordToWrite& record : records) writer.Append(record);
    } else if (records.size() == made.records.size()) {
      writer.AppendBlock(records, unit.payload);
    } else {
      AppendAlone(records, made, writer);
    }
    result_.records += records.size();
    expected_ = unit.number + made.records.size();
    place_ = unit.end;
  }

  // Of a block with a key that came before, which no shard can hold whole: the others, each stored on its own.
  static void AppendAlone(std::vector<RecordToWrite>& records, const RebuiltUnit& made, ShardWriter& writer) {
    const std::optional<std::vector<BlockEntry>> entries = DecodeBlock(made.raw);
    for (RecordToWrite& record : records) {
      for (const BlockEntry& entry : *entries) {
        if (entry.key.data() == record.key.data())
          record.payload = Bytes(made.raw).subspan(entry.position, entry.raw_bytes);
      }
      record.info.codec = Codec::kStored;
      record.info.stored_bytes = record.info.raw_bytes;
      record.info.stored_xxh3 = record.info.encoded_xxh3;
      writer.Append(record);
    }
  }

  void Lose(RepairResult::Loss loss) { result_.losses.push_back(std::move(loss)); }

  // Of the index, where it can be read.
  std::optional<std::string> KeyOf(std::uint64_t number) const {
    if (shard_.index() == nullptr || number >= shard_.index()->num_records()) return std::nullopt;
    try {
      return std::string(shard_.index()->Key(number));
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // A block whose frame is harmed says no more how many records it had: those up to `next`.
  void LoseUnit(const RepairUnit& unit, std::uint64_t next, const std::string& why) {
    const std::uint64_t size = shard_.bytes().size(), end = std::min(unit.end, size);
    const bool block = static_cast<Codec>(unit.codec) == Codec::kZstdBlock;
    const std::uint64_t count = block && !unit.by_index ? next - unit.number : unit.count;
    if (block && shard_.index() == nullptr) {
      RepairResult::Loss loss{unit.begin, end - unit.begin, unit.number, {}, "in a block: " + why};
      loss.records = count;
      Lose(std::move(loss));
    } else {
      for (std::uint64_t i = unit.number; i < unit.number + count; ++i) {
        std::optional<std::string> key = KeyOf(i);
        if (!key && !block) key = std::string(unit.key);
        Lose({unit.begin, end - unit.begin, i, std::move(key), why});
      }
    }
    expected_ = unit.number + count;
    place_ = end;
  }

  // Records from the one that is expected to before `number`, of which nothing was found. They lay before `place`.
  void LoseUpTo(std::uint64_t number, std::uint64_t place) {
    if (expected_ >= number) return;
    const std::uint64_t begin = std::min(place_, place), bytes = place - begin;
    std::uint64_t unnamed = 0;
    const auto lose_unnamed = [&](std::uint64_t before) {
      if (unnamed == 0) return;
      RepairResult::Loss loss{begin, bytes, before - unnamed, {}, "nothing of it is left"};
      loss.records = unnamed;
      if (unnamed > 1) loss.what = "nothing of them is left";
      Lose(std::move(loss));
      unnamed = 0;
    };
    if (shard_.index() == nullptr) {
      unnamed = number - expected_;
    } else {
      for (std::uint64_t i = expected_; i < number; ++i) {
        std::optional<std::string> key = KeyOf(i);
        if (!key) {
          ++unnamed;
          continue;
        }
        lose_unnamed(i);
        Lose({begin, bytes, i, std::move(key), "nothing of it is left"});
      }
    }
    lose_unnamed(number);
    expected_ = number;
  }

  // What came after the last record that was found.
  void LoseTheRest() {
    const std::uint64_t size = shard_.bytes().size();
    std::optional<std::uint64_t> records;
    if (neighbours_.entry() != nullptr) records = neighbours_.entry()->records;
    if (!records || shard_.index() != nullptr) records = shard_.NumRecords(units_);
    if (records) return LoseUpTo(*records, std::max(place_, shard_.PayloadEnd().value_or(size)));
    RepairResult::Loss loss{place_, size - place_, expected_, {}, ""};
    loss.records = 0;
    loss.what = "the file ends without an index: records that came after are lost, if there were any";
    Lose(std::move(loss));
  }

  void Conclude(const fs::path& partial) {
    if (not_probed_ > 0) {
      result_.notes.push_back(Number(not_probed_, "picture") +
                              " could not be looked at: the width and height are 0 in the new index");
    }
    const Bytes old = shard_.bytes();
    result_.unchanged = old.size() == result_.summary.bytes && Xxh3_128(old) == result_.summary.file_digest;
    if (const ShardEntry* entry = neighbours_.entry(); entry != nullptr) {
      result_.in_dataset = entry->digest == result_.summary.file_digest ? RepairResult::InDataset::kSameDigest
                                                                        : RepairResult::InDataset::kOtherDigest;
    }
    const bool place = options_.in_place && result_.in_dataset == RepairResult::InDataset::kSameDigest;
    const fs::path& target = place ? options_.shard : options_.output;
    try {
      if (!place) {
        Publish(partial, target);
      } else if (rename(partial.c_str(), target.c_str()) != 0) {
        ThrowSystemError(errno, "put in place", target.native());
      }
    } catch (...) {
      unlink(partial.c_str());
      throw;
    }
    SyncFolder(target.has_parent_path() ? target.parent_path() : fs::path("."));
    result_.placed = place;
  }

  const RepairOptions& options_;
  const DamagedShard shard_;
  const Neighbours neighbours_;
  PackProgress progress_;
  RepairResult result_;
  std::vector<RepairUnit> units_;
  std::vector<std::byte> dictionary_bytes_;
  std::unique_ptr<const DecompressionDictionary> dictionary_;
  std::unordered_set<std::string> keys_;
  std::uint64_t not_probed_ = 0;
  std::uint64_t expected_ = 0, place_ = 0;  // the number that comes next, and where
};

}  // namespace

RepairResult Repair(const RepairOptions& options) { return ShardRepair(options).Run(); }

}  // namespace shardpack
