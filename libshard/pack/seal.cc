#include "libshard/pack/seal.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "libshard/pack/finished_shards.h"
#include "libshard/pack/ledger.h"
#include "libshard/pack/output_folder.h"
#include "libshard/pack/packing.h"
#include "libshard/pack/part.h"
#include "libshard/pack/published_plan.h"
#include "libshard/store/content_counts.h"
#include "shardpack/error.h"
#include "shardpack/shard_reader.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr char kCreator[] = "shardpack " SHARDPACK_VERSION;
constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr std::size_t kNamedShards = 5;

class Sealer {
 public:
  explicit Sealer(const SealJob& job) : job_(job), head_(job.plan.head()), output_(job.work.output()) {}
  Sealed Run();

 private:
  void LookAtStop() const {
    if (job_.stop != nullptr && *job_.stop) throw Interrupted{};
  }
  void WaitForTurn(FileLock& lock) const;
  void LoadJournal();
  Manifest Begin() const;
  void ReadIndexes(Manifest& manifest) const;
  void ReadIndex(const ShardEntry& entry, ContentCounts& counts) const;
  void Strike(const std::string& file) const;
  void Commit(const Manifest& manifest) const;
  std::string OlderLedger() const;

  const SealJob& job_;
  const PlanHead& head_;
  const fs::path& output_;
  OldDataset old_;
  RecordCounts counts_;
  std::vector<ShardEntry> entries_;
  std::vector<std::uint64_t> numbers_;  // of entries_
  std::vector<BadInput> bad_;
};

void Sealer::WaitForTurn(FileLock& lock) const {
  while (!lock.Try(FileLock::Mode::kAlone)) {
    LookAtStop();
    std::this_thread::sleep_for(kPoll);
  }
  lock.WriteHolder();
}

void Sealer::LoadJournal() {
  for (std::uint64_t s = 0; s < job_.plan.num_shards(); ++s) {
    auto finished = FinishedOf(output_, job_.plan, s);
    if (!finished) {
      throw Error(ErrorCode::kInvalidArgument, "shard " + std::to_string(head_.first_shard + s) + " of " +
                                                   Escaped(output_.native()) + " is missing: run its part again");
    }
    counts_.Add(finished->counts);
    std::move(finished->bad.begin(), finished->bad.end(), std::back_inserter(bad_));
    if (!finished->entry) continue;
    entries_.push_back(std::move(*finished->entry));
    numbers_.push_back(finished->number);
  }
}

// The shard is done again by the next run.
void Sealer::Strike(const std::string& file) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].file == file) unlinkat(job_.work.fd(), FinishedName(numbers_[i]).c_str(), 0);
  }
}

void Sealer::ReadIndex(const ShardEntry& entry, ContentCounts& counts) const {
  LookAtStop();
  try {
    const ShardReader shard = ShardReader::Open(output_ / entry.file);
    if (shard.file_bytes() != entry.bytes || shard.num_records() != entry.records ||
        shard.index_digest() != entry.index_digest) {
      throw Error(ErrorCode::kCorruption, Location{(output_ / entry.file).native(), {}, {}},
                  "is not the shard that was finished under this name");
    }
    counts.Add(shard);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruption && error.code() != ErrorCode::kNotFound) throw;
    Strike(entry.file);
    throw Error(ErrorCode::kCorruption, error.where(), error.reason() + " (run the same command again to mend it)");
  }
}

void Sealer::ReadIndexes(Manifest& manifest) const {
  PackProgress progress;
  progress.stage = "sealing";
  progress.bad_inputs = bad_.size();
  progress.inputs_total = manifest.records;
  ContentCounts counts;
  for (const ShardEntry& entry : manifest.shards) {
    if (job_.progress) job_.progress(progress);
    ReadIndex(entry, counts);
    progress.inputs_done += entry.records;
  }
  counts.Finish(manifest);
}

// All but what the indexes say.
Manifest Sealer::Begin() const {
  Manifest manifest;
  RecordCounts counts = counts_;
  if (head_.base_dataset) {
    manifest = *old_.manifest;
    counts = RecordCounts::Of(manifest);
    // Sums of some pictures say nothing of all.
    const bool sums = counts.statistics && counts_.statistics;
    counts.Add(counts_);
    if (!sums) counts.statistics.reset();
    manifest.revisions.push_back({"append", head_.request_digest, counts_.records});
  } else {
    manifest.name = head_.name;
    manifest.options = head_.options;
    manifest.label_kind = head_.label_kind;
    manifest.receipts = head_.codecs.receipts;
    manifest.request_digest = head_.request_digest;
    manifest.creator = kCreator;
  }
  counts.PutInto(manifest);
  manifest.classes = head_.classes;
  manifest.bad_inputs += bad_.size();
  manifest.shards.insert(manifest.shards.end(), entries_.begin(), entries_.end());
  manifest.bytes_out = 0;
  for (const ShardEntry& entry : manifest.shards) manifest.bytes_out += entry.bytes;
  return manifest;
}

// The lines of the dataset that is added to; not those of an append that was killed after it had written its own.
std::string Sealer::OlderLedger() const {
  return head_.base_dataset ? LedgerLines(output_, old_.manifest->bad_inputs) : std::string();
}

void Sealer::Commit(const Manifest& manifest) const {
  LookAtStop();
  // Before the commit, so that no dataset with bad inputs is ever without its ledger.
  if (manifest.bad_inputs > 0) WriteLedger(output_, OlderLedger(), bad_);
  manifest.Commit(output_);
  if (manifest.bad_inputs == 0) RemoveLedger(output_);
  RemoveUnnamedShards(output_, manifest);
}

Sealed Sealer::Run() {
  if (job_.progress) job_.progress({"sealing", 0, 0, 0, 0, 0});
  FileLock lock = job_.work.OpenLock(kSealLock);
  WaitForTurn(lock);
  old_ = LookAtOutput(output_);
  LoadJournal();
  BadInputs limited(job_.limit);
  limited.Add(bad_);
  if (old_.manifest && old_.damage.empty() && IsCommitted(output_, job_.plan, *old_.manifest)) {
    return {*old_.manifest, limited.first()};  // another process was first
  }
  if (counts_.records == 0) ThrowNoGoodInput(bad_.front());
  if (head_.base_dataset && (!old_.manifest || old_.manifest->dataset_digest != *head_.base_dataset)) {
    throw Error(ErrorCode::kInvalidArgument,
                "the dataset in " + Escaped(output_.native()) + " is not the one any more that was to be added to");
  }
  LookAtStop();
  Manifest manifest = Begin();
  ReadIndexes(manifest);
  Commit(manifest);
  return {std::move(manifest), limited.first()};
}

std::string NamesOf(const Plan& plan, const std::vector<std::uint64_t>& missing) {
  std::string text;
  for (std::size_t i = 0; i < missing.size() && i < kNamedShards; ++i) {
    text += (text.empty() ? "" : ", ") + std::to_string(plan.head().first_shard + missing[i]);
  }
  return text + (missing.size() > kNamedShards ? ", ..." : "");
}

// Of the parts that were ever started here: those that have a shard to do yet.
std::string PartsOf(const WorkFolder& work, const Plan& plan, const std::vector<std::uint64_t>& missing) {
  std::string text;
  std::uint32_t cut_into = 0;
  std::vector<ShardRange> ranges;
  for (const std::string& name : NamesIn(work.fd(), work.path())) {
    const auto part = ParsePartLockName(name);
    if (!part || part->count == 1) continue;
    if (cut_into != part->count) ranges = CutIntoParts(plan, part->count);
    cut_into = part->count;
    break;
  }
  for (std::uint32_t i = 0; i < cut_into; ++i) {
    const bool lacks = std::any_of(missing.begin(), missing.end(), [&](auto s) { return ranges[i].Contains(s); });
    if (lacks) text += (text.empty() ? "" : ", ") + std::to_string(i);
  }
  return text.empty() ? "" : "; parts to run again: " + text + " of " + std::to_string(cut_into);
}

void CheckNoneMissing(const WorkFolder& work, const Plan& plan) {
  std::vector<std::uint64_t> missing;
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
    if (!FinishedOf(work.output(), plan, s)) missing.push_back(s);
  }
  if (missing.empty()) return;
  throw Error(ErrorCode::kInvalidArgument, std::to_string(missing.size()) + " of " + std::to_string(plan.num_shards()) +
                                               " shards of " + Escaped(work.output().native()) + " are missing: " +
                                               NamesOf(plan, missing) + PartsOf(work, plan, missing));
}

PackResult CompleteResult(Manifest manifest) {
  PackResult result;
  result.sealed = result.already_complete = true;
  result.shards_done = result.shards_planned = manifest.shards.size();
  result.manifest = std::move(manifest);
  return result;
}

}  // namespace

Sealed SealPlan(const SealJob& job) { return Sealer(job).Run(); }

PackResult Seal(const SealOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const OldDataset old = LookAtOutput(options.output);
  if (!OpenWorkFolder(options.output / kWorkFolder)) {
    if (!old.damage.empty()) throw Error(ErrorCode::kCorruption, Location{options.output.native(), {}, {}}, old.damage);
    if (old.manifest) return CompleteResult(*old.manifest);
    throw Error(ErrorCode::kInvalidArgument, "nothing is packed into " + Escaped(options.output.native()) +
                                                 ": it has no plan (shardpack convert or plan makes one)");
  }
  WorkFolder work(options.output, WorkFolder::Use::kShared);
  const std::optional<Plan> plan = OpenPublishedPlan(work.path());
  if (!plan) {
    if (old.manifest && old.damage.empty()) return CompleteResult(*old.manifest);
    throw Error(ErrorCode::kInvalidArgument, "there is no plan in " + Escaped(work.path().native()));
  }
  if (old.manifest && old.damage.empty() && IsCommitted(options.output, *plan, *old.manifest)) {
    return CompleteResult(*old.manifest);  // the folder's destructor cleans up
  }
  CheckNoneMissing(work, *plan);
  BadInputLimit limit;
  limit.most = options.max_bad.value_or(plan->head().max_bad.value_or(limit.most));
  const SealJob job{work, *plan, limit, options.progress, options.stop};
  Sealed sealed = SealPlan(job);
  PackResult result;
  result.sealed = true;
  result.manifest = std::move(sealed.manifest);
  for (const BadInput& bad : sealed.first_bad) result.first_bad.push_back({bad.key, bad.reason});
  result.shards_done = result.shards_planned = plan->num_shards();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace shardpack
