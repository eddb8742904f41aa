#include "libshard/pack/json_object.h"

#include <nlohmann/json.hpp>

#include "shardpack/error.h"

namespace shardpack {
namespace {

[[noreturn]] void Fail(const std::string& reason) { throw Error(ErrorCode::kBadInput, reason); }

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Walks over an object that is known to be well-formed.
class ObjectWalk {
 public:
  ObjectWalk(std::string_view json, std::span<const std::string_view> names,
             std::span<std::optional<std::string>> values)
      : json_(json), names_(names), values_(values) {}

  std::string Run() {
    rest_ = "{";
    SkipSpace();
    ++at_;  // the brace
    for (SkipSpace(); json_[at_] != '}'; SkipSpace()) {
      if (json_[at_] == ',') {
        ++at_;
        SkipSpace();
      }
      TakeMember();
    }
    rest_ += '}';
    return std::move(rest_);
  }

 private:
  void SkipSpace() {
    while (IsSpace(json_[at_])) ++at_;
  }

  void TakeMember() {
    const std::size_t before = rest_.size();
    if (before > 1) rest_ += ',';
    const std::size_t name = rest_.size();
    TakeString(rest_);
    std::optional<std::string>* const wanted = Wanted(std::string_view(rest_).substr(name));
    SkipSpace();
    ++at_;  // the colon
    if (wanted != nullptr) {
      rest_.resize(before);
      TakeValue(wanted->emplace());
    } else {
      rest_ += ':';
      TakeValue(rest_);
    }
  }

  // Where the value of the member with this name, as it is written, is to go; null: nowhere.
  std::optional<std::string>* Wanted(std::string_view written) {
    const std::string_view plain = written.substr(1, written.size() - 2);
    const bool has_escapes = plain.find('\\') != std::string_view::npos;
    const std::string name = has_escapes ? TextOfJsonString(written) : std::string(plain);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (name != names_[i]) continue;
      if (values_[i]) Fail("the object has two members " + TextInQuotes(name));
      return &values_[i];
    }
    return nullptr;
  }

  static std::string TextInQuotes(const std::string& name) { return '"' + Escaped(name) + '"'; }

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

  std::string_view json_;
  std::span<const std::string_view> names_;
  std::span<std::optional<std::string>> values_;
  std::string rest_;
  std::size_t at_ = 0;
};

}  // namespace

std::string TakeMembers(std::string_view json, std::span<const std::string_view> names,
                        std::span<std::optional<std::string>> values) {
  if (json.starts_with("\xef\xbb\xbf")) json.remove_prefix(3);
  if (!nlohmann::json::accept(json)) Fail("is not well-formed JSON");
  std::size_t begin = 0;
  while (IsSpace(json[begin])) ++begin;
  if (json[begin] != '{') Fail("is not a JSON object");
  return ObjectWalk(json, names, values).Run();
}

std::string TextOfJsonString(std::string_view json) { return nlohmann::json::parse(json).get<std::string>(); }

}  // namespace shardpack
