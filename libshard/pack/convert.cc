#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "libshard/pack/batch_packer.h"
#include "libshard/pack/ledger.h"
#include "libshard/pack/ordered_work.h"
#include "libshard/pack/output_folder.h"
#include "libshard/pack/plan.h"
#include "libshard/pack/scan.h"
#include "libshard/pack/shard_series.h"
#include "libshard/pack/task_arena.h"
#include "shardpack/pack.h"
#include "shardpack/threads.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr char kCreator[] = "shardpack " SHARDPACK_VERSION;
constexpr auto kProgressInterval = std::chrono::milliseconds(100);

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Whether `inner` lies below `outer` or is it, links resolved as far as the paths exist.
bool LiesInside(const fs::path& inner, const fs::path& outer) {
  std::error_code error;
  const fs::path a = fs::weakly_canonical(inner, error), b = fs::weakly_canonical(outer, error);
  if (error) return false;
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

void CheckOptions(const PackOptions& options) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); };
  if (options.sources.empty()) refuse("no source is given");
  if (options.shard_bytes == 0) refuse("the shard size must be above 0");
  if (options.shard_records && *options.shard_records == 0) refuse("the number of records a shard must be above 0");
  if (options.max_bad_share && !(*options.max_bad_share >= 0 && *options.max_bad_share <= 1))
    refuse("the share of bad inputs must be 0% to 100%");
  for (const fs::path& source : options.sources) {
    if (LiesInside(options.output, source)) {
      refuse("the output " + Escaped(options.output.native()) + " lies inside the source " + Escaped(source.native()));
    }
  }
}

// In words, how a request differs from the one `old` was made by; empty where it is the same.
std::string Difference(const PackOptions& options, const Manifest& old, const Inputs& inputs,
                       const Digest128& request) {
  const auto wanted = ContentOptions(options);
  std::string text;
  const auto say = [&](const std::string& name, const std::string& there, const std::string& here) {
    if (!text.empty()) text += ", ";
    text += name + " was " + (there.empty() ? "not given" : Escaped(there)) + " and is " +
            (here.empty() ? "not given" : Escaped(here)) + " now";
  };
  for (const auto& [name, value] : old.options) {
    const auto here = wanted.find(name);
    if (here == wanted.end() || here->second != value) say(name, value, here == wanted.end() ? "" : here->second);
  }
  for (const auto& [name, value] : wanted) {
    if (!old.options.contains(name)) say(name, "", value);
  }
  if (old.name != options.name) say("name", old.name, options.name);
  if (text.empty() && old.classes != inputs.classes) text = "the classes differ";
  if (text.empty() && old.request_digest != request) text = "the inputs differ (their names, number or sizes)";
  if (text.empty() && old.bad_inputs > 0 && options.on_error == OnError::kFail) {
    text = std::to_string(old.bad_inputs) + " bad inputs were left out, which --on-error fail does not allow";
  }
  return text;
}

// True where the request is sealed already. Throws where another dataset is in the way.
bool IsComplete(const PackOptions& options, const OldDataset& old, const Inputs& inputs, const Digest128& request) {
  if (options.overwrite || (!old.manifest && old.damage.empty())) return false;
  const std::string where = Escaped(options.output.native());
  if (!old.damage.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                where + " holds a damaged dataset (" + old.damage + "): make it anew with --overwrite");
  }
  const std::string difference = Difference(options, *old.manifest, inputs, request);
  if (difference.empty()) return true;
  throw Error(ErrorCode::kInvalidArgument,
              where + " holds another dataset: " + difference + "; replace it with --overwrite or name another folder");
}

// Tolerates bad inputs as the options say, in order of keys.
class BadInputs {
 public:
  BadInputs(const PackOptions& options, std::uint64_t inputs) : on_error_(options.on_error) {
    if (options.max_bad) limit_ = *options.max_bad;
    if (options.max_bad_share) {
      limit_ = std::min(limit_, static_cast<std::uint64_t>(*options.max_bad_share * static_cast<double>(inputs)));
    }
  }

  void Add(const std::vector<BadInput>& bad) {
    for (const BadInput& input : bad) {
      const ErrorCode code = input.code == ErrorCode::kIo ? ErrorCode::kIo : ErrorCode::kBadInput;
      const Location where{input.source, std::nullopt, input.offset};
      if (on_error_ == OnError::kFail) throw Error(code, where, input.reason);
      if (list_.size() >= limit_) {
        throw Error(code, where,
                    input.reason + " (bad input number " + std::to_string(list_.size() + 1) + "; the limit is " +
                        std::to_string(limit_) + ")");
      }
      list_.push_back(input);
    }
  }
  const std::vector<BadInput>& list() const { return list_; }

 private:
  OnError on_error_;
  std::uint64_t limit_ = ~std::uint64_t{0};
  std::vector<BadInput> list_;
};

class Progress {
 public:
  Progress(const PackOptions& options, std::uint64_t inputs, std::uint64_t bytes) : report_(options.progress) {
    now_.stage = "packing";
    now_.inputs_total = inputs;
    now_.bytes_total = bytes;
  }
  void Add(const InputRange& batch, std::uint64_t bad) {
    now_.inputs_done += batch.size();
    now_.bytes_done += batch.bytes;
    now_.bad_inputs = bad;
    if (!report_ || Clock::now() - last_ < kProgressInterval) return;
    last_ = Clock::now();
    report_(now_);
  }
  void Stage(std::string_view stage) {
    now_.stage = stage;
    if (report_) report_(now_);
  }

 private:
  const std::function<void(const PackProgress&)>& report_;
  PackProgress now_;
  Clock::time_point last_{};
};

// One conversion, from the scanned inputs on.
class Conversion {
 public:
  Conversion(const PackOptions& options, const Inputs& inputs, const Digest128& request, int threads)
      : options_(options),
        inputs_(inputs),
        request_(request),
        threads_(threads),
        shards_(CutIntoShards(inputs.list, options.shard_bytes, options.shard_records)),
        bad_(options, inputs.list.size()),
        progress_(options, inputs.list.size(), inputs.bytes) {
    for (std::uint64_t s = 0; s < shards_.size(); ++s) {
      for (const InputRange& batch : CutIntoBatches(inputs.list, shards_[s])) batches_.push_back({s, batch});
    }
  }

  // What is known before work: shards with their records and bytes of input.
  Manifest Planned() const {
    Manifest manifest;
    manifest.classes = inputs_.classes;
    manifest.records = inputs_.list.size();
    manifest.bytes_in = inputs_.bytes;
    for (const InputRange& shard : shards_) manifest.shards.push_back({"", shard.size(), shard.bytes, {}, {}});
    return manifest;
  }

  Manifest Run() {
    WorkFolder work(options_.output);
    // Looked at again under the lock: another process may have sealed in between.
    const OldDataset old = LookAtOutput(options_.output);
    if (IsComplete(options_, old, inputs_, request_)) {
      already_complete_ = true;
      return *old.manifest;
    }
    try {
      ShardSeries series(work, inputs_, request_);
      Pack(series);
      progress_.Stage("sealing");
      Manifest manifest = series.Finish();
      Seal(work, manifest);
      return manifest;
    } catch (...) {
      // Shards that were moved but not named; those of the old dataset stay.
      if (old.damage.empty()) RemoveUnnamedShards(options_.output, old.manifest.value_or(Manifest{}));
      throw;
    }
  }
  bool already_complete() const { return already_complete_; }

 private:
  struct Batch {
    std::uint64_t shard;
    InputRange range;
  };

  void Pack(ShardSeries& series) {
    BatchContext context{inputs_, options_.verify_images, options_.limits, options_.memory_bytes / (4 * threads_),
                         {},      options_.stop};
    OrderedWork::Functions functions;
    // The batch as read and, at worst, compressed beside it.
    functions.cost = [&](std::uint64_t k) { return batches_[k].range.bytes * 2; };
    functions.make_worker = [&] {
      return [&, packer = std::make_shared<BatchPacker>(context)](std::uint64_t k, PackedBatch& out) {
        packer->Pack(batches_[k].range, out);
      };
    };
    functions.finish = [&](std::uint64_t k, PackedBatch& packed) {
      if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
      bad_.Add(packed.bad);
      series.Append(batches_[k].shard, packed);
      progress_.Add(batches_[k].range, bad_.list().size());
    };
    OrderedWork(batches_.size(), threads_, options_.memory_bytes / 2, std::move(functions)).Run();
    if (bad_.list().size() == inputs_.list.size()) {
      const BadInput& first = bad_.list().front();
      throw Error(ErrorCode::kBadInput, Location{first.source, std::nullopt, first.offset},
                  first.reason + " (no input is a good image)");
    }
  }

  void Seal(WorkFolder& work, Manifest& manifest) {
    manifest.name = options_.name;
    manifest.options = ContentOptions(options_);
    manifest.bad_inputs = bad_.list().size();
    manifest.creator = kCreator;
    work.SyncOutput();
    if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
    // Before the commit, so that no dataset with bad inputs is ever without its ledger.
    if (!bad_.list().empty()) WriteLedger(options_.output, bad_.list());
    manifest.Commit(options_.output);
    if (bad_.list().empty()) RemoveLedger(options_.output);
    RemoveUnnamedShards(options_.output, manifest);
  }

  const PackOptions& options_;
  const Inputs& inputs_;
  const Digest128 request_;
  const int threads_;
  const std::vector<InputRange> shards_;
  std::vector<Batch> batches_;
  BadInputs bad_;
  Progress progress_;
  bool already_complete_ = false;

 public:
  const std::vector<BadInput>& bad() const { return bad_.list(); }
};

}  // namespace

PackResult Convert(const PackOptions& options) {
  const auto start = Clock::now();
  CheckOptions(options);
  const OldDataset old = LookAtOutput(options.output);
  const int threads = options.threads > 0 ? options.threads : AvailableThreads();
  if (options.progress) options.progress({"scanning", 0, 0, 0, 0, 0});

  PackResult result;
  const ScanOptions scan{options.sources, options.classes ? &*options.classes : nullptr, options.stop};
  Inputs inputs;
  ArenaOf(threads).execute([&] { inputs = ScanFolders(scan); });
  if (options.warn) std::for_each(inputs.warnings.begin(), inputs.warnings.end(), options.warn);
  result.ignored_files = inputs.ignored_files;
  const Digest128 request = RequestDigest(options, inputs);

  if (IsComplete(options, old, inputs, request)) {
    CleanUpBeside(options.output, *old.manifest);
    result.manifest = *old.manifest;
    result.already_complete = true;
  } else {
    Conversion conversion(options, inputs, request, threads);
    if (options.dry_run) {
      result.manifest = conversion.Planned();
    } else {
      result.manifest = conversion.Run();
      result.already_complete = conversion.already_complete();
      for (const BadInput& bad : conversion.bad()) {
        if (result.first_bad.size() < PackResult::kNamedBad) result.first_bad.push_back({bad.key, bad.reason});
      }
    }
  }
  result.sealed = !options.dry_run || result.already_complete;
  result.seconds = SecondsSince(start);
  return result;
}

}  // namespace shardpack
