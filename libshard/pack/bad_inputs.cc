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

std::optional<std::uint64_t> MostBad(const PackOptions& options, std::uint64_t inputs) {
  if (!options.max_bad_share) return options.max_bad;
  // 29 % of 100 inputs are 29, though 0.29 * 100 is a little less in binary.
  constexpr double kRounding = 1e-9;
  const double most = *options.max_bad_share * static_cast<double>(inputs);
  const auto share = static_cast<std::uint64_t>(most + std::max(most, 1.0) * kRounding);
  return std::min(share, options.max_bad.value_or(share));
}

BadInputLimit LimitOf(const PackOptions& options, std::uint64_t inputs) {
  BadInputLimit limit;
  limit.on_error = options.on_error;
  limit.most = MostBad(options, inputs).value_or(limit.most);
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
