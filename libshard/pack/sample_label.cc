#include "libshard/pack/sample_label.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "libshard/pack/json_object.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

[[noreturn]] void Fail(const std::string& reason) { throw Error(ErrorCode::kBadInput, reason); }

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool IsWholeNumber(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Digits with a point or an exponent; from_chars alone would take "nan" and "infinity", which may well name a class.
bool LooksLikeNumber(std::string_view text) {
  return text.find_first_of("0123456789") != std::string_view::npos &&
         text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

std::int64_t WholeNumber(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    Fail("the label " + std::string(text.substr(0, 40)) + " does not fit into 64 bits");
  }
  return number;
}

std::optional<double> Decimal(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error != std::errc()) Fail("the label " + std::string(text.substr(0, 40)) + " is no double");
  return value;
}

OwnedLabel ListLabel(std::string_view value) {
  OwnedLabel label{LabelKind::kList, 0, "["};
  std::string_view rest = value.substr(1, value.size() - 2);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view number = rest.substr(0, comma);
    if (!IsWholeNumber(number)) Fail("the label is a list of something else than whole numbers");
    if (label.text.size() > 1) label.text += ',';
    label.text += std::to_string(WholeNumber(number));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  label.text += ']';
  return label;
}

}  // namespace

std::string_view KindInWords(LabelKind kind) {
  switch (kind) {
    case LabelKind::kClass:
      return "a class name";
    case LabelKind::kInteger:
      return "a whole number";
    case LabelKind::kList:
      return "a list of numbers";
    case LabelKind::kFloat:
      return "a fractional number";
  }
  return "a label";
}

OwnedLabel FloatLabel(double value) {
  if (!std::isfinite(value)) Fail("the label is not a finite number");
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {LabelKind::kFloat, 0, std::string(text, end)};
}

OwnedLabel LabelOfText(std::string_view text) {
  text = Trimmed(text);
  if (text.empty()) Fail("the label is empty");
  if (IsWholeNumber(text)) return {LabelKind::kInteger, WholeNumber(text), {}};
  if (LooksLikeNumber(text)) {
    if (const auto number = Decimal(text)) return FloatLabel(*number);
  }
  return {LabelKind::kClass, 0, std::string(text)};
}

OwnedLabel LabelOfJson(std::string_view value) {
  if (value[0] == '"') {
    OwnedLabel label;
    label.text = TextOfJsonString(value);
    if (label.text.empty()) Fail("the label is empty");
    return label;
  }
  if (value[0] == '[') return ListLabel(value);
  if (IsWholeNumber(value)) return {LabelKind::kInteger, WholeNumber(value), {}};
  if (!LooksLikeNumber(value)) Fail("the label is neither a number, a string nor a list of whole numbers");
  const auto number = Decimal(value);
  if (!number) Fail("the label " + std::string(value.substr(0, 40)) + " is no double");
  return FloatLabel(*number);
}

LabelledObject ParseLabelledObject(std::string_view json) {
  constexpr std::string_view kNames[] = {"label"};
  std::optional<std::string> values[1];
  LabelledObject object;
  object.rest = TakeMembers(json, kNames, values);
  if (values[0]) object.label = LabelOfJson(*values[0]);
  return object;
}

}  // namespace shardpack
