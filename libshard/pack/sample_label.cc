#include "libshard/pack/sample_label.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

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

// Walks over JSON that is known to be well-formed.
class ObjectWalk {
 public:
  explicit ObjectWalk(std::string_view json) : json_(json) {}

  LabelledObject Run() {
    LabelledObject object;
    object.rest = "{";
    SkipSpace();
    ++at_;  // the brace
    for (SkipSpace(); json_[at_] != '}'; SkipSpace()) {
      if (json_[at_] == ',') {
        ++at_;
        SkipSpace();
      }
      std::string name;
      TakeString(name);
      SkipSpace();
      ++at_;  // the colon
      std::string value;
      TakeValue(value);
      // Names may be written with escapes.
      if (nlohmann::json::parse(name).get_ref<const std::string&>() == "label") {
        if (object.label) Fail("the object has two members \"label\"");
        object.label = LabelOf(value);
      } else {
        if (object.rest.size() > 1) object.rest += ',';
        object.rest.append(name).append(1, ':').append(value);
      }
    }
    object.rest += '}';
    return object;
  }

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  void SkipSpace() {
    while (IsSpace(json_[at_])) ++at_;
  }

  void TakeString(std::string& to) {
    const std::size_t begin = at_++;
    while (json_[at_] != '"') at_ += json_[at_] == '\\' ? 2 : 1;
    to.append(json_.substr(begin, ++at_ - begin));
  }

  // Up to the comma or brace behind it, whatever is nested in it.
  void TakeValue(std::string& to) {
    for (std::size_t depth = 0;;) {
      const char c = json_[at_];
      if (c == '"') {
        TakeString(to);
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}')) return;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      if (!IsSpace(c)) to += c;
      ++at_;
    }
  }

  static OwnedLabel LabelOf(const std::string& value) {
    if (value[0] == '"') {
      OwnedLabel label;
      label.text = nlohmann::json::parse(value).get<std::string>();
      if (label.text.empty()) Fail("the label is empty");
      return label;
    }
    if (value[0] == '[') return ListLabel(value);
    if (IsWholeNumber(value)) return {LabelKind::kInteger, WholeNumber(value), {}};
    if (!LooksLikeNumber(value)) Fail("the label is neither a number, a string nor a list of whole numbers");
    const auto number = Decimal(value);
    if (!number) Fail("the label " + value.substr(0, 40) + " is no double");
    return FloatLabel(*number);
  }

  static OwnedLabel ListLabel(std::string_view value) {
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

  std::string_view json_;
  std::size_t at_ = 0;
};

}  // namespace

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

LabelledObject ParseLabelledObject(std::string_view json) {
  if (json.starts_with("\xef\xbb\xbf")) json.remove_prefix(3);
  if (!nlohmann::json::accept(json)) Fail("is not well-formed JSON");
  json = Trimmed(json);
  if (!json.starts_with('{')) Fail("is not a JSON object");
  return ObjectWalk(json).Run();
}

}  // namespace shardpack
