#include "libshard/pack/plan_output.h"

#include "libshard/store/record_format.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kReportEvery = 256;  // inputs between two looks at the clock

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

}  // namespace

PlanOutput::PlanOutput(PlanContext& context, const std::filesystem::path& file)
    : context_(context),
      writer_(file, context.options.shard_bytes, context.options.shard_records),
      digester_(context.options, context.labels, context.base),
      sampling_(context.options.compression != Compression::kNone),
      last_sequence_(context.sources.size()) {}

void PlanOutput::Take(std::string_view sort_key, std::string_view payload) {
  if (++seen_ % kReportEvery == 0) context_.progress.ReportSometimes("planning", seen_, context_.found);
  const FoundEntry entry = DecodeEntry(payload);
  const std::uint32_t key_skip = context_.PutKey(sort_key, entry.source, key_);
  const std::uint64_t hash = InputFilter::Hash(key_);
  const bool taken = context_.filter.Takes(key_, hash);
  if (taken || !context_.KeysAreSettled()) CheckTwice(payload, key_skip);
  if (!taken || num_inputs_ >= context_.options.limit.value_or(~std::uint64_t{0})) return;
  Write(entry, key_skip, hash);
}

// In the orders by key, or by its hash, equal keys come one after the other.
void PlanOutput::CheckTwice(std::string_view payload, std::uint32_t key_skip) {
  if (has_before_ && key_ == key_before_) {
    if (!context_.KeysAreSettled()) throw KeysClash{};
    const PlannedInput before = context_.ViewOf(DecodeEntry(payload_before_), key_before_, skip_before_);
    const PlannedInput here = context_.ViewOf(DecodeEntry(payload), key_, key_skip);
    ThrowTwice(key_, context_.Describe(before), context_.Describe(here));
  }
  has_before_ = true;
  key_before_ = key_;
  skip_before_ = key_skip;
  payload_before_.assign(payload);
}

void PlanOutput::CheckIsNew(const PlannedInput& input) const {
  if (context_.base == nullptr || !context_.base->has_key || !context_.base->has_key(input.key)) return;
  throw Error(ErrorCode::kInvalidArgument, "the dataset has the key " + Escaped(input.key) + " of " +
                                               Escaped(context_.Describe(input)) + " already");
}

// Each step back would decompress the archive from its beginning.
void PlanOutput::CheckGoesForward(const PlannedInput& input) {
  if (!context_.sources[input.source]->IsStream() || !input.bad.empty()) return;
  std::uint64_t& last = last_sequence_[input.source];
  if (input.sequence < last) {
    throw Error(ErrorCode::kInvalidArgument,
                Escaped(context_.Describe(input)) +
                    " would be packed after what lies behind it, and a compressed archive is read from front to back "
                    "only: decompress it, or pack it in --order source");
  }
  last = input.sequence;
}

void PlanOutput::Write(const FoundEntry& entry, std::uint32_t key_skip, std::uint64_t hash) {
  PlannedInput input = context_.ViewOf(entry, key_, key_skip);
  CheckIsNew(input);
  CheckGoesForward(input);
  const auto describe = [&input, this] { return context_.Describe(input); };
  if (entry.typed_label.empty()) {
    input.label = context_.labels.Final(entry.label, describe);
  } else {
    PutTypedLabel(entry.typed_label, entry.metadata, metadata_);
    input.metadata = metadata_;
  }
  if (key_.size() > kMaxKeyBytes && input.bad.empty()) {
    input.bad = "its key is longer than 65535 bytes";
    input.bad_code = ErrorCode::kBadInput;
  }
  writer_.Add(input);
  digester_.Add(input);
  ++num_inputs_;
  bytes_ += input.size;
  if (sampling_ && input.bad.empty() && input.size > 0 && sample_.Wants(hash)) Sample(input, hash);
}

void PlanOutput::Sample(const PlannedInput& input, std::uint64_t hash) {
  if (context_.sources[input.source]->IsStream()) return;  // its bytes were taken while it was scanned
  SampledInput sampled;
  sampled.key = input.key;
  sampled.key_skip = input.key_skip;
  sampled.source = input.source;
  sampled.size = input.size;
  sampled.sequence = input.sequence;
  sampled.locator = input.locator;
  sample_.Add(hash, std::move(sampled));
}

}  // namespace shardpack
