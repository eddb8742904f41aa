#include "libshard/pack/plan_builder.h"

#include <algorithm>
#include <mutex>

#include "libshard/pack/bad_inputs.h"
#include "libshard/pack/external_sort.h"
#include "libshard/pack/plan_context.h"
#include "libshard/pack/plan_format.h"
#include "libshard/pack/plan_output.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kNoticeEvery = 256;  // inputs between two looks at `stop` and at the clock
// A sample need not be more than this share of all inputs' bytes, nor less than so many: working it is to cost little.
constexpr std::uint64_t kSampleShare = 8, kSampleBytesAtLeast = 1 << 20;

// Bytes that sort as digests do; 128 bits, for they stand for the keys.
std::string HashOf(std::string_view key) {
  const Digest128 digest = Xxh3_128(AsBytes(key));
  std::string bytes;
  for (const std::uint64_t half : {digest.high, digest.low}) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(half >> shift);
  }
  return bytes;
}

class PlanBuilder {
 public:
  PlanBuilder(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources, const PlanBase* base,
              const std::filesystem::path& scratch)
      : options_(options),
        scratch_(scratch),
        memory_(options.memory_bytes / 4),
        context_(options, sources, base),
        sorter_(MakeSorter(memory_)) {
    // Equal keys do not come one after the other in this order; their hashes do in theirs.
    if (context_.order.order() == RecordOrder::kSource) hashes_ = MakeSorter(memory_ / 4);
  }

  // Throws Error with kInvalidArgument for a stream in shuffled order, before it is looked at; and what sources throw.
  void Scan();
  PlanHead Write(const std::filesystem::path& file, const SampleWork& work);

 private:
  class Sink;

  std::unique_ptr<ExternalSorter> MakeSorter(std::uint64_t memory) const {
    return std::make_unique<ExternalSorter>(scratch_, memory, options_.stop);
  }

  void RefuseShuffledStreams() const;
  void Add(const FoundInput& found, std::uint32_t source);
  void CheckHashes();
  void HashPrefixedKeys();
  void SortByPrefixedKeys();
  [[noreturn]] void ThrowTwiceOfHash(const std::string& hash) const;
  void CheckAnyInput() const;
  PlanHead WriteOnce(const std::filesystem::path& file, const SampleWork& work);
  void FillHead(PlanHead& head) const;
  CodecPlan ChooseBySample(PlanOutput& output, const SampleWork& work);

  const PackOptions& options_;
  const std::filesystem::path scratch_;
  const std::uint64_t memory_;
  PlanContext context_;
  std::unique_ptr<ExternalSorter> sorter_, hashes_;

  std::atomic<std::uint64_t> ignored_{0};
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  LowestHashes streamed_;  // with their bytes
};

class PlanBuilder::Sink : public InputSink {
 public:
  Sink(PlanBuilder& builder, std::uint32_t source) : builder_(builder), source_(source) {
    wants_bytes_ = builder.context_.sources[source]->IsStream() && builder.options_.compression != Compression::kNone;
  }

  void Add(const FoundInput& input) override { builder_.Add(input, source_); }

  bool WantsBytes(std::string_view key) override {
    if (!wants_bytes_) return false;
    const std::uint64_t hash = InputFilter::Hash(key);
    if (!builder_.context_.filter.Takes(key, hash)) return false;
    const std::lock_guard lock(builder_.mutex_);
    return builder_.streamed_.Wants(hash);
  }

  void Sample(std::string_view key, Bytes bytes) override {
    SampledInput input;
    input.key = key;
    input.source = source_;
    input.size = bytes.size();
    input.bytes.emplace(bytes.begin(), bytes.end());
    const std::lock_guard lock(builder_.mutex_);
    builder_.streamed_.Add(InputFilter::Hash(key), std::move(input));
  }

  void AddClasses(const std::vector<std::string>& names, bool keep_order) override {
    builder_.context_.labels.AddClasses(names, keep_order);
  }
  void AddIgnored(std::uint64_t files) override { builder_.ignored_ += files; }
  void Warn(const std::string& one_line) override {
    const std::lock_guard lock(builder_.mutex_);
    builder_.warnings_.push_back(one_line);
  }

 private:
  PlanBuilder& builder_;
  const std::uint32_t source_;
  bool wants_bytes_ = false;
};

// By name they may well be in order; PlanOutput sees.
void PlanBuilder::RefuseShuffledStreams() const {
  if (context_.order.order() != RecordOrder::kShuffled) return;
  for (std::size_t s = 0; s < context_.sources.size(); ++s) {
    if (!context_.sources[s]->IsStream()) continue;
    throw Error(ErrorCode::kInvalidArgument,
                Escaped(options_.sources.at(s).native()) +
                    " is compressed and so read from front to back only, which no shuffled order is: decompress it, or "
                    "pack it in --order source");
  }
}

void PlanBuilder::Scan() {
  RefuseShuffledStreams();
  for (std::size_t s = 0; s < context_.sources.size(); ++s) {
    Sink sink(*this, static_cast<std::uint32_t>(s));
    context_.sources[s]->Scan(options_.stop, sink);
  }
  context_.progress.Report("scanning", context_.found, 0);
  context_.labels.Settle();
  sorter_->Finish();
  if (hashes_) hashes_->Finish();
}

void PlanBuilder::Add(const FoundInput& found, std::uint32_t source) {
  const std::uint64_t count = ++context_.found;
  if (count % kNoticeEvery == 0) {
    if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
    context_.progress.ReportSometimes("scanning", count, 0);
  }
  if (found.key.size() > kMaxPlannedKey / 2) {
    throw Error(ErrorCode::kInvalidArgument, "the key " + Escaped(found.key.substr(0, 64)) + "... has " +
                                                 std::to_string(found.key.size()) + " bytes");
  }
  FoundEntry entry;
  entry.source = source;
  entry.sequence = found.sequence;
  entry.size = found.size;
  entry.metadata = found.metadata;
  entry.locator = found.locator;
  entry.bad = found.bad;
  entry.bad_code = found.bad_code;
  const bool typed = found.label.kind == LabelKind::kList || found.label.kind == LabelKind::kFloat;
  if (typed) entry.typed_label = found.label.text;
  const PlannedInput view = context_.ViewOf(entry, found.key, 0);
  // Small enough to be called without memory of its own.
  const auto describe = [&view, this] { return context_.Describe(view); };
  entry.label = context_.labels.Note(found.label, describe);
  if (context_.KeysAreSettled() && !context_.filter.Takes(found.key, InputFilter::Hash(found.key))) return;

  thread_local std::string sort_key, payload;
  sort_key.clear();
  payload.clear();
  context_.order.EncodeKey(found.key, source, found.sequence, sort_key);
  EncodeEntry(entry, payload);
  sorter_->Add(sort_key, payload);
  if (hashes_) hashes_->Add(HashOf(found.key), {});
}

// The hash of a key that comes twice; empty where none does.
std::string HashThatIsTwice(const ExternalSorter& hashes) {
  std::string before, twice;
  hashes.ForEach([&](std::string_view hash, std::string_view) {
    if (hash == before && twice.empty()) twice = hash;
    before = hash;
  });
  return twice;
}

void PlanBuilder::CheckHashes() {
  std::string twice = HashThatIsTwice(*hashes_);
  if (!twice.empty() && !context_.KeysAreSettled()) {
    context_.PrefixKeys();
    HashPrefixedKeys();
    twice = HashThatIsTwice(*hashes_);
  }
  if (!twice.empty()) ThrowTwiceOfHash(twice);
  hashes_.reset();
}

void PlanBuilder::HashPrefixedKeys() {
  hashes_ = MakeSorter(memory_ / 4);
  std::string key;
  sorter_->ForEach([&](std::string_view sort_key, std::string_view payload) {
    context_.PutKey(sort_key, DecodeEntry(payload).source, key);
    if (context_.filter.Takes(key, InputFilter::Hash(key))) hashes_->Add(HashOf(key), {});
  });
  hashes_->Finish();
}

void PlanBuilder::SortByPrefixedKeys() {
  context_.PrefixKeys();
  auto sorter = MakeSorter(memory_);
  std::string key, new_sort_key;
  sorter_->ForEach([&](std::string_view sort_key, std::string_view payload) {
    const FoundEntry entry = DecodeEntry(payload);
    context_.PutKey(sort_key, entry.source, key);
    new_sort_key.clear();
    context_.order.EncodeKey(key, entry.source, entry.sequence, new_sort_key);
    sorter->Add(new_sort_key, payload);
  });
  sorter->Finish();
  sorter_ = std::move(sorter);
  context_.SortKeysHavePrefixes();
}

// Finds the two again.
void PlanBuilder::ThrowTwiceOfHash(const std::string& hash) const {
  std::string first, key;
  sorter_->ForEach([&](std::string_view sort_key, std::string_view payload) {
    const FoundEntry entry = DecodeEntry(payload);
    const std::uint32_t key_skip = context_.PutKey(sort_key, entry.source, key);
    if (HashOf(key) != hash) return;
    const std::string name = context_.Describe(context_.ViewOf(entry, key, key_skip));
    if (!first.empty()) ThrowTwice(key, first, name);
    first = name;
  });
  ThrowTwice(key, first, first);
}

void PlanBuilder::CheckAnyInput() const {
  if (context_.found > 0) return;
  std::string message = "no image in " + Escaped(options_.sources.at(0).native());
  if (context_.several()) message += " and the other sources";
  const std::size_t classes = context_.labels.classes().size();
  if (context_.sources[0]->kind() == SourceKind::kFolder) {
    message += classes == 0 ? ": there are no class folders; a tree has one folder a class, each with its pictures"
                            : ": none of its " + std::to_string(classes) + " class folders has a picture";
  }
  throw Error(ErrorCode::kBadInput, message);
}

void PlanBuilder::FillHead(PlanHead& head) const {
  head.options = ContentOptions(options_);
  head.name = options_.name;
  head.label_kind = context_.labels.kind();
  head.classes = context_.labels.classes();
  head.ignored_files = ignored_;
  head.warnings = warnings_;
  head.source_marks = SourceMarks(options_);
  head.overwrite = options_.overwrite;
  if (context_.base != nullptr) {
    head.base_dataset = context_.base->manifest->dataset_digest;
    head.first_shard = FirstNewShard(*context_.base->manifest);
    return;
  }
  for (const std::string& name : context_.labels.ClassesWithoutInputs()) {
    head.warnings.push_back("class " + Escaped(name) + " has no images");
  }
}

CodecPlan PlanBuilder::ChooseBySample(PlanOutput& output, const SampleWork& work) {
  LowestHashes sample = std::move(output.sample());
  sample.Add(std::move(streamed_));
  sample.CutTo(std::max(output.bytes() / kSampleShare, kSampleBytesAtLeast));
  const auto records = WorkSample(sample, context_.sources, work.make_worker, options_.stop);
  return work.choose(records, output.num_inputs(), output.writer().num_shards());
}

PlanHead PlanBuilder::WriteOnce(const std::filesystem::path& file, const SampleWork& work) {
  PlanOutput output(context_, file);
  sorter_->ForEach([&](std::string_view key, std::string_view payload) { output.Take(key, payload); });
  if (output.num_inputs() == 0) {
    throw Error(ErrorCode::kBadInput, "none of " + std::to_string(context_.found) +
                                          " inputs is left by --include, --exclude, --split and --limit");
  }
  context_.progress.Report("planning", context_.found, context_.found);
  PlanHead head;
  FillHead(head);
  head.num_inputs = output.num_inputs();
  head.bytes = output.bytes();
  head.max_bad = MostBad(options_, head.num_inputs);
  head.request_digest = output.FinishDigest();
  head.codecs = ChooseBySample(output, work);
  output.writer().Finish(head);
  return head;
}

PlanHead PlanBuilder::Write(const std::filesystem::path& file, const SampleWork& work) {
  CheckAnyInput();
  if (hashes_) CheckHashes();
  try {
    return WriteOnce(file, work);
  } catch (const KeysClash&) {
    SortByPrefixedKeys();
  }
  return WriteOnce(file, work);
}

}  // namespace

PlanHead BuildPlan(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources,
                   const PlanBase* base, const std::filesystem::path& scratch, const std::filesystem::path& file,
                   const SampleWork& work) {
  PlanBuilder builder(options, sources, base, scratch);
  builder.Scan();
  return builder.Write(file, work);
}

}  // namespace shardpack
