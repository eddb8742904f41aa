#include "libshard/pack/request_digest.h"

#include "libshard/pack/plan_format.h"

namespace shardpack {
namespace {

constexpr std::size_t kBuffer = 64 << 10;

}  // namespace

RequestDigester::RequestDigester(const PackOptions& options, const LabelBook& labels, const PlanBase* base) {
  PutText(buffer_, "shardpack request 2");
  const auto content = ContentOptions(options);
  PutVarint(buffer_, content.size());
  for (const auto& [name, value] : content) {
    PutText(buffer_, name);
    PutText(buffer_, value);
  }
  PutText(buffer_, options.name);
  PutVarint(buffer_, static_cast<std::uint64_t>(labels.kind()));
  PutVarint(buffer_, labels.classes().size());
  for (const std::string& name : labels.classes()) PutText(buffer_, name);
  // Not of the dataset that is added to: an append that is done already is known by its digest, and then it is another.
  PutText(buffer_, base != nullptr ? "append" : "");
}

void RequestDigester::Add(const PlannedInput& input) {
  // Each text after its length, so that no two lists of inputs give the same bytes.
  PutText(buffer_, input.key);
  PutVarint(buffer_, input.size);
  PutSigned(buffer_, input.label);
  PutText(buffer_, input.metadata);
  PutVarint(buffer_, input.bad.empty() ? 0 : 1);
  FlushAbove(kBuffer);
}

Digest128 RequestDigester::Finish(std::uint64_t num_inputs) {
  PutVarint(buffer_, num_inputs);
  FlushAbove(0);
  return digest_.Finish();
}

void RequestDigester::FlushAbove(std::size_t bytes) {
  if (buffer_.size() <= bytes) return;
  digest_.Add(AsBytes(buffer_));
  buffer_.clear();
}

}  // namespace shardpack
