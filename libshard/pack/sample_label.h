// Labels as sources state them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libshard/pack/source.h"

namespace shardpack {

// A label with its text.
struct OwnedLabel {
  LabelKind kind = LabelKind::kClass;
  std::int64_t number = 0;
  std::string text;

  SourceLabel view() const { return {kind, number, text}; }
};

// For messages: "a class name", "a whole number", "a list of numbers", "a fractional number".
std::string_view KindInWords(LabelKind kind);

// The shortest decimal that reads back as the same double. Throws Error with kBadInput for one that JSON cannot say.
OwnedLabel FloatLabel(double value);

// A label written as text: a whole number, another number, or the name of a class; white space around it is no part of
// it. Throws Error with kBadInput (no path): empty, a whole number of more than 64 bits.
OwnedLabel LabelOfText(std::string_view text);

// The label that a JSON value states: a whole number, another number, a string (the name of a class) or a list of whole
// numbers; without white space outside of strings, as TakeMembers() gives it. Throws Error with kBadInput (no path):
// none of these, more than 64 bits. Precondition: it is well-formed.
OwnedLabel LabelOfJson(std::string_view value);

// A JSON object with a member "label" that is a whole number, another number, a string (the name of a class) or a list
// of whole numbers.
struct LabelledObject {
  std::optional<OwnedLabel> label;
  // The object without that member and without white space; every other byte as it was, so that numbers keep all their
  // digits.
  std::string rest;
};
// Throws Error with kBadInput (no path): not JSON, no object, a label that is none of these, two labels.
LabelledObject ParseLabelledObject(std::string_view json);

}  // namespace shardpack
