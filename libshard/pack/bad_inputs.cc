#include "libshard/pack/bad_inputs.h"

#include <algorithm>
#include <string>

namespace shardpack {
namespace {

[[noreturn]] void Throw(const BadInput& input, const std::string& more) {
  const ErrorCode code = input.code == ErrorCode::kIo ? ErrorCode::kIo : ErrorCode::kBadInput;
  throw Error(code, Location{input.source, std::nullopt, input.offset}, input.reason + more);
}

}  // namespace

BadInputLimit LimitOf(const PackOptions& options, std::uint64_t inputs) {
  BadInputLimit limit;
  limit.on_error = options.on_error;
  if (options.max_bad) limit.most = *options.max_bad;
  if (options.max_bad_share) {
    const auto share = static_cast<std::uint64_t>(*options.max_bad_share * static_cast<double>(inputs));
    limit.most = std::min(limit.most, share);
  }
  return limit;
}

void BadInputs::Add(const std::vector<BadInput>& bad) {
  for (const BadInput& input : bad) {
    if (limit_.on_error == OnError::kFail) Throw(input, "");
    if (count_ >= limit_.most) {
      Throw(input,
            " (bad input number " + std::to_string(count_ + 1) + "; the limit is " + std::to_string(limit_.most) + ")");
    }
    ++count_;
    if (first_.size() < PackResult::kNamedBad) first_.push_back(input);
  }
}

void ThrowNoGoodInput(const BadInput& first) {
  Throw(BadInput{first.key, first.source, first.reason, first.offset, ErrorCode::kBadInput},
        " (no input is a good image)");
}

}  // namespace shardpack
