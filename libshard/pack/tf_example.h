// tf.train.Example, read where it lies.
//
// Not by the protobuf library: it would copy the picture out, and a plan needs to know where it lies in the file. What
// is read is protobuf's wire format of
//
//   message Example   { Features features = 1; }
//   message Features  { map<string, Feature> feature = 1; }
//   message Feature   { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
//   message BytesList { repeated bytes value = 1; }        and so on; numbers are packed or not
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

// The values of one feature. Views point into the record.
class TfFeature {
 public:
  enum class Kind { kNone, kBytes, kFloat, kInt64 };

  Kind kind() const noexcept { return kind_; }

  // At most `most` of the values, so that a list without end takes no memory; the caller asks for one more than it can
  // use. Throw Error with kBadInput (no path) where the bytes are no such list. Precondition: the kind.
  std::vector<std::string_view> ByteStrings(std::size_t most) const;
  std::vector<float> Floats(std::size_t most) const;
  std::vector<std::int64_t> Int64s(std::size_t most) const;

 private:
  friend class TfExample;
  void Parse(std::string_view message);

  Kind kind_ = Kind::kNone;
  std::vector<std::string_view> lists_;  // protobuf joins lists that come in pieces
};

class TfExample {
 public:
  // Throws Error with kBadInput (no path) where the bytes are no Example. They must outlive what this gives.
  explicit TfExample(std::string_view record);

  // Null where the example has none of that name.
  const TfFeature* Find(std::string_view name) const;
  // In byte order of their names.
  const std::map<std::string_view, TfFeature>& features() const noexcept { return features_; }

 private:
  void ParseFeatures(std::string_view message);
  void ParseEntry(std::string_view message);

  std::map<std::string_view, TfFeature> features_;
};

}  // namespace shardpack
