#include "libshard/pack/plan_builder.h"

#include <algorithm>
#include <cmath>

#include "libshard/pack/external_sort.h"
#include "libshard/pack/plan_entry.h"
#include "libshard/pack/plan_filter.h"
#include "libshard/pack/plan_labels.h"
#include "libshard/pack/plan_progress.h"
#include "libshard/pack/plan_writer.h"
#include "libshard/pack/request_digest.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kNoticeEvery = 256;  // inputs between two looks at `stop` and at the clock
// A sample need not be more than this share of all inputs' bytes, nor less than so many: working it is to cost little.
constexpr std::uint64_t kSampleShare = 8, kSampleBytesAtLeast = 1 << 20;
constexpr std::size_t kMaxRecordKey = 65535;

// Two inputs have one key, and prefixes were not tried yet.
struct KeysClash {};

std::string SourceName(const std::filesystem::path& path) {
  std::filesystem::path clean = std::filesystem::absolute(path).lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  return clean.filename().native();
}

bool AllFolders(const std::vector<std::unique_ptr<Source>>& sources) {
  return std::all_of(sources.begin(), sources.end(), [](const auto& s) { return s->kind() == SourceKind::kFolder; });
}

std::string HashKey(std::string_view key) {
  const Digest128 digest = Xxh3_128(AsBytes(key));
  std::string bytes(16, '\0');
  for (int i = 0; i < 8; ++i) {
    bytes[static_cast<std::size_t>(i)] = static_cast<char>(digest.high >> (56 - 8 * i));
    bytes[static_cast<std::size_t>(8 + i)] = static_cast<char>(digest.low >> (56 - 8 * i));
  }
  return bytes;
}

// `metadata` with the member "label" before its own.
void PutTypedLabel(std::string_view typed_label, std::string_view metadata, std::string& out) {
  out.assign("{\"label\":").append(typed_label);
  constexpr std::string_view kSpace = " \t\r\n";
  const auto open = metadata.find('{');
  const auto member = open == std::string_view::npos ? open : metadata.find_first_not_of(kSpace, open + 1);
  if (member == std::string_view::npos || metadata[member] == '}') {
    out += '}';
  } else {
    out.append(",").append(metadata.substr(member));
  }
}

class PlanBuilder {
 public:
  PlanBuilder(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources, const PlanBase* base,
              const std::filesystem::path& scratch)
      : options_(options),
        sources_(sources),
        base_(base),
        scratch_(scratch),
        memory_(options.memory_bytes / 4),
        filter_(options),
        labels_(options, base),
        order_(options, AllFolders(sources)),
        sorter_(scratch, memory_, options.stop),
        progress_(options) {
    if (order_.order() == RecordOrder::kSource) {
      // Duplicates do not come next to each other in this order; their hashes do in theirs.
      hashes_ = std::make_unique<ExternalSorter>(scratch, memory_ / 4, options.stop);
    }
  }

  void Scan();
  PlanHead Write(const std::filesystem::path& file, const SampleWork& work);

 private:
  class Sink;

  PlannedInput ViewOf(const FoundEntry& entry, std::string_view key, std::uint32_t key_skip) const;
  std::string Describe(std::string_view key, std::uint32_t key_skip, std::string_view payload) const;
  bool several() const { return sources_.size() > 1; }

  void Add(const FoundInput& found, std::uint32_t source);
  std::uint32_t PutKey(std::string_view key, std::uint32_t source, std::string& out) const;
  void CheckHashes();
  bool HasTwice(const ExternalSorter& hashes, std::string& twice) const;
  [[noreturn]] void ThrowTwice(std::string_view key, const std::string& one, const std::string& other) const;
  [[noreturn]] void ThrowTwice(const std::string& hash) const;
  void PrefixKeys();
  class Output;
  PlanHead WriteOnce(const std::filesystem::path& file, const SampleWork& work);
  void FillHead(PlanHead& head) const;
  void CheckAnyInput() const;
  [[noreturn]] void ThrowNoInput() const;
  CodecPlan ChooseBySample(LowestHashes sample, const PlanHead& head, std::uint64_t shards, const SampleWork& work);

  const PackOptions& options_;
  const std::vector<std::unique_ptr<Source>>& sources_;
  const PlanBase* base_;
  const std::filesystem::path scratch_;
  const std::uint64_t memory_;
  const InputFilter filter_;
  LabelBook labels_;
  const SortOrder order_;
  ExternalSorter sorter_;
  std::unique_ptr<ExternalSorter> prefixed_;  // the same, with the sources' names before the keys
  std::unique_ptr<ExternalSorter> hashes_;
  std::vector<std::string> prefixes_;  // by source; empty: keys stand as they are
  PlanProgress progress_;

  std::atomic<std::uint64_t> found_{0};
  std::atomic<std::uint64_t> ignored_{0};
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  LowestHashes streamed_;  // with bytes
};

class PlanBuilder::Sink : public InputSink {
 public:
  Sink(PlanBuilder& builder, std::uint32_t source) : builder_(builder), source_(source) {
    wants_bytes_ = builder.sources_[source]->IsStream() && builder.options_.compression != Compression::kNone;
  }

  void Add(const FoundInput& input) override { builder_.Add(input, source_); }

  bool WantsBytes(std::string_view key) override {
    if (!wants_bytes_) return false;
    const std::uint64_t hash = InputFilter::Hash(key);
    if (!builder_.filter_.Takes(key, hash)) return false;
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
    builder_.labels_.AddClasses(names, keep_order);
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

void PlanBuilder::Scan() {
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    Sink sink(*this, static_cast<std::uint32_t>(s));
    sources_[s]->Scan(options_.stop, sink);
  }
  progress_.Report("scanning", found_, 0);
  labels_.Settle();
  sorter_.Finish();
  if (hashes_) hashes_->Finish();
}

void PlanBuilder::Add(const FoundInput& found, std::uint32_t source) {
  const std::uint64_t count = ++found_;
  if (count % kNoticeEvery == 0) {
    if (options_.stop != nullptr && *options_.stop) throw Interrupted{};
    progress_.ReportSometimes("scanning", count, 0);
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
  if (found.label.kind == LabelKind::kList || found.label.kind == LabelKind::kFloat) {
    entry.typed_label = found.label.text;
  }
  entry.label = labels_.Note(found.label, [&] { return sources_[source]->Describe(ViewOf(entry, found.key, 0)); });
  // With several sources filters wait until it is known whether keys need a prefix.
  if (!several() && !filter_.Takes(found.key, InputFilter::Hash(found.key))) return;
  thread_local std::string sort_key, payload;
  sort_key.clear();
  payload.clear();
  order_.EncodeKey(found.key, source, found.sequence, sort_key);
  EncodeEntry(entry, payload);
  sorter_.Add(sort_key, payload);
  if (hashes_) hashes_->Add(HashKey(found.key), {});
}

PlannedInput PlanBuilder::ViewOf(const FoundEntry& entry, std::string_view key, std::uint32_t key_skip) const {
  PlannedInput input;
  input.key = key;
  input.key_skip = key_skip;
  input.source = entry.source;
  input.size = entry.size;
  input.sequence = entry.sequence;
  input.metadata = entry.metadata;
  input.locator = entry.locator;
  input.bad = entry.bad;
  input.bad_code = entry.bad_code;
  return input;
}

std::uint32_t PlanBuilder::PutKey(std::string_view key, std::uint32_t source, std::string& out) const {
  out.clear();
  if (!prefixes_.empty()) out = prefixes_[source];
  const auto skip = static_cast<std::uint32_t>(out.size());
  out += key;
  return skip;
}

void PlanBuilder::ThrowTwice(std::string_view key, const std::string& one, const std::string& other) const {
  throw Error(ErrorCode::kInvalidArgument,
              "two inputs have the key " + Escaped(key) + ": " + Escaped(one) + " and " + Escaped(other));
}

// Finds them again by the hash of their key.
void PlanBuilder::ThrowTwice(const std::string& hash) const {
  std::string first, key;
  sorter_.ForEach([&](std::string_view sort_key, std::string_view payload) {
    const FoundEntry entry = DecodeEntry(payload);
    const std::uint32_t skip = PutKey(order_.KeyOf(sort_key), entry.source, key);
    if (HashKey(key) != hash) return;
    const std::string name = sources_[entry.source]->Describe(ViewOf(entry, key, skip));
    if (!first.empty()) ThrowTwice(key, first, name);
    first = name;
  });
  throw Error(ErrorCode::kInvalidArgument, "two inputs have the same key: " + Escaped(first));
}

bool PlanBuilder::HasTwice(const ExternalSorter& hashes, std::string& twice) const {
  std::string before;
  hashes.ForEach([&](std::string_view hash, std::string_view) {
    if (hash == before && twice.empty()) twice = hash;
    before = hash;
  });
  return !twice.empty();
}

void PlanBuilder::CheckHashes() {
  std::string twice;
  if (!HasTwice(*hashes_, twice)) return;
  if (!several()) ThrowTwice(twice);
  PrefixKeys();
  hashes_ = std::make_unique<ExternalSorter>(scratch_, memory_ / 4, options_.stop);
  std::string key;
  sorter_.ForEach([&](std::string_view sort_key, std::string_view payload) {
    PutKey(order_.KeyOf(sort_key), DecodeEntry(payload).source, key);
    if (filter_.Takes(key, InputFilter::Hash(key))) hashes_->Add(HashKey(key), {});
  });
  hashes_->Finish();
  twice.clear();
  if (HasTwice(*hashes_, twice)) ThrowTwice(twice);
}

// Puts the sources' names before the keys, and sorts anew where that changes the order.
void PlanBuilder::PrefixKeys() {
  for (std::size_t s = 0; s < sources_.size(); ++s) prefixes_.push_back(SourceName(options_.sources.at(s)) + "/");
  if (order_.order() == RecordOrder::kSource) return;
  prefixed_ = std::make_unique<ExternalSorter>(scratch_, memory_, options_.stop);
  std::string key, new_sort_key;
  sorter_.ForEach([&](std::string_view sort_key, std::string_view payload) {
    const FoundEntry entry = DecodeEntry(payload);
    PutKey(order_.KeyOf(sort_key), entry.source, key);
    new_sort_key.clear();
    order_.EncodeKey(key, entry.source, entry.sequence, new_sort_key);
    prefixed_->Add(new_sort_key, payload);
  });
  prefixed_->Finish();
}

// Takes entries in order, and writes those that are taken.
class PlanBuilder::Output {
 public:
  Output(PlanBuilder& builder, const std::filesystem::path& file, PlanHead& head)
      : builder_(builder),
        head_(head),
        writer_(file, builder.options_.shard_bytes, builder.options_.shard_records),
        digester_(builder.options_, builder.labels_, builder.base_),
        sampling_(builder.options_.compression != Compression::kNone) {}

  void Take(std::string_view sort_key, std::string_view payload) {
    if (++seen_ % kNoticeEvery == 0) builder_.progress_.ReportSometimes("planning", seen_, builder_.found_);
    const FoundEntry entry = DecodeEntry(payload);
    const std::string_view ordered_key = builder_.order_.KeyOf(sort_key);
    std::uint32_t skip = 0;
    // After a new sort the prefix is part of the sort key.
    if (builder_.prefixed_) {
      skip = static_cast<std::uint32_t>(builder_.prefixes_[entry.source].size());
      key_.assign(ordered_key);
    } else {
      skip = builder_.PutKey(ordered_key, entry.source, key_);
    }
    const bool settled = !builder_.several() || !builder_.prefixes_.empty();
    const std::uint64_t hash = InputFilter::Hash(key_);
    const bool taken = builder_.filter_.Takes(key_, hash);
    if (taken || !settled) CheckTwice(payload, skip, settled);
    if (!taken || head_.num_inputs >= builder_.options_.limit.value_or(~std::uint64_t{0})) return;
    Write(entry, skip, hash);
  }

  PlanWriter& writer() { return writer_; }
  LowestHashes& sample() { return sample_; }
  Digest128 FinishDigest() { return digester_.Finish(head_.num_inputs); }

 private:
  // In the orders by key, or by its hash, equal keys come one after the other.
  void CheckTwice(std::string_view payload, std::uint32_t skip, bool settled) {
    if (key_ == key_before_ && has_before_) {
      if (!settled) throw KeysClash{};
      const std::string one = builder_.Describe(key_before_, skip_before_, payload_before_);
      builder_.ThrowTwice(key_, one, builder_.Describe(key_, skip, payload));
    }
    has_before_ = true;
    key_before_ = key_;
    skip_before_ = skip;
    payload_before_.assign(payload);
  }

  void Write(const FoundEntry& entry, std::uint32_t skip, std::uint64_t hash) {
    PlannedInput input = builder_.ViewOf(entry, key_, skip);
    if (builder_.base_ != nullptr && builder_.base_->has_key && builder_.base_->has_key(key_)) {
      throw Error(ErrorCode::kInvalidArgument, "the dataset has the key " + Escaped(key_) + " of " +
                                                   Escaped(builder_.sources_[entry.source]->Describe(input)) +
                                                   " already");
    }
    if (entry.typed_label.empty()) {
      input.label =
          builder_.labels_.Final(entry.label, [&] { return builder_.sources_[entry.source]->Describe(input); });
    } else {
      PutTypedLabel(entry.typed_label, entry.metadata, metadata_);
      input.metadata = metadata_;
    }
    if (key_.size() > kMaxRecordKey && input.bad.empty()) {
      input.bad = "its key is longer than 65535 bytes";
      input.bad_code = ErrorCode::kBadInput;
    }
    writer_.Add(input);
    digester_.Add(input);
    ++head_.num_inputs;
    head_.bytes += input.size;
    if (sampling_ && input.bad.empty() && input.size > 0 && sample_.Wants(hash)) Sample(input, hash);
  }

  void Sample(const PlannedInput& input, std::uint64_t hash) {
    if (builder_.sources_[input.source]->IsStream()) return;
    SampledInput sampled;
    sampled.key = input.key;
    sampled.key_skip = input.key_skip;
    sampled.source = input.source;
    sampled.size = input.size;
    sampled.sequence = input.sequence;
    sampled.locator = input.locator;
    sample_.Add(hash, std::move(sampled));
  }

  PlanBuilder& builder_;
  PlanHead& head_;
  PlanWriter writer_;
  RequestDigester digester_;
  const bool sampling_;
  LowestHashes sample_;
  std::uint64_t seen_ = 0;
  std::string key_, metadata_;
  bool has_before_ = false;
  std::string key_before_, payload_before_;
  std::uint32_t skip_before_ = 0;
};

std::string PlanBuilder::Describe(std::string_view key, std::uint32_t key_skip, std::string_view payload) const {
  const FoundEntry entry = DecodeEntry(payload);
  return sources_[entry.source]->Describe(ViewOf(entry, key, key_skip));
}

void PlanBuilder::CheckAnyInput() const {
  if (found_ > 0) return;
  ThrowNoInput();
}

void PlanBuilder::ThrowNoInput() const {
  std::string message = "no image in " + Escaped(options_.sources.at(0).native());
  if (several()) message += " and the other sources";
  if (sources_[0]->kind() == SourceKind::kFolder) {
    message += labels_.classes().empty()
                   ? ": there are no class folders; a tree has one folder a class, each with its pictures"
                   : ": none of its " + std::to_string(labels_.classes().size()) + " class folders has a picture";
  }
  throw Error(ErrorCode::kBadInput, message);
}

void PlanBuilder::FillHead(PlanHead& head) const {
  head.options = ContentOptions(options_);
  head.name = options_.name;
  head.label_kind = labels_.kind();
  head.classes = labels_.classes();
  head.ignored_files = ignored_;
  head.warnings = warnings_;
  if (base_ == nullptr) {
    for (const std::string& name : labels_.ClassesWithoutInputs()) {
      head.warnings.push_back("class " + Escaped(name) + " has no images");
    }
  }
  head.source_marks = SourceMarks(options_);
  head.overwrite = options_.overwrite;
  if (base_ != nullptr) {
    head.base_dataset = base_->manifest->dataset_digest;
    head.first_shard = FirstNewShard(*base_->manifest);
  }
}

CodecPlan PlanBuilder::ChooseBySample(LowestHashes sample, const PlanHead& head, std::uint64_t shards,
                                      const SampleWork& work) {
  sample.Add(std::move(streamed_));
  sample.CutTo(std::max(head.bytes / kSampleShare, kSampleBytesAtLeast));
  return work.choose(WorkSample(sample, sources_, work.make_worker, options_.stop), head.num_inputs, shards);
}

PlanHead PlanBuilder::WriteOnce(const std::filesystem::path& file, const SampleWork& work) {
  PlanHead head;
  FillHead(head);
  Output output(*this, file, head);
  const auto take = [&](std::string_view key, std::string_view payload) { output.Take(key, payload); };
  (prefixed_ ? *prefixed_ : sorter_).ForEach(take);
  if (head.num_inputs == 0) {
    throw Error(ErrorCode::kBadInput,
                "none of " + std::to_string(found_) + " inputs is left by --include, --exclude, --split and --limit");
  }
  progress_.Report("planning", found_, found_);
  head.request_digest = output.FinishDigest();
  head.max_bad = options_.max_bad;
  if (options_.max_bad_share) {
    const auto share = static_cast<std::uint64_t>(*options_.max_bad_share * static_cast<double>(head.num_inputs));
    head.max_bad = std::min(share, head.max_bad.value_or(share));
  }
  head.codecs = ChooseBySample(std::move(output.sample()), head, output.writer().num_shards(), work);
  output.writer().Finish(head);
  return head;
}

PlanHead PlanBuilder::Write(const std::filesystem::path& file, const SampleWork& work) {
  CheckAnyInput();
  if (hashes_) CheckHashes();
  hashes_.reset();
  try {
    return WriteOnce(file, work);
  } catch (const KeysClash&) {
    PrefixKeys();
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
