#include "libshard/pack/tf_example.h"

#include <bit>
#include <string>

#include "libshard/store/coding.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::size_t kMostFeatures = 100000;

[[noreturn]] void Fail(const char* what) {
  throw Error(ErrorCode::kBadInput, std::string("not a tf.train.Example: ") + what);
}

enum WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

struct Field {
  std::uint32_t number = 0;
  std::uint8_t type = 0;
  std::uint64_t varint = 0;  // kVarint
  std::string_view bytes;    // of the others
};

// The fields of one message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  bool Next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t tag = Varint();
    if (tag >> 3 == 0 || tag >> 32 != 0) Fail("a field without a number");
    field.number = static_cast<std::uint32_t>(tag >> 3);
    field.type = static_cast<std::uint8_t>(tag & 7);
    switch (field.type) {
      case kVarint:
        field.varint = Varint();
        return true;
      case kFixed64:
        field.bytes = Take(8);
        return true;
      case kFixed32:
        field.bytes = Take(4);
        return true;
      case kLengthDelimited:
        field.bytes = Take(Varint());
        return true;
      default:
        Fail("a field of a kind that protobuf has not");
    }
  }

  bool AtEnd() const { return rest_.empty(); }

  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) Fail("it ends within a number");
      const auto b = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{b & 0x7fu} << shift;
      if (b < 0x80) return value;
    }
    Fail("a number of more than 64 bits");
  }

 private:
  std::string_view Take(std::uint64_t size) {
    if (size > rest_.size()) Fail("a field is longer than what holds it");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

std::string_view Message(const Field& field) {
  if (field.type != kLengthDelimited) Fail("a field of another kind than it should be");
  return field.bytes;
}

// Calls take(field) for each field number 1 of the lists until it says that this is enough.
template <typename Take>
void ForEachValue(const std::vector<std::string_view>& lists, const Take& take) {
  for (const std::string_view list : lists) {
    Fields fields(list);
    for (Field field; fields.Next(field);) {
      if (field.number == 1 && !take(field)) return;
    }
  }
}

float FloatAt(std::string_view bytes) { return std::bit_cast<float>(Load<std::uint32_t>(bytes.data())); }

}  // namespace

std::vector<std::string_view> TfFeature::ByteStrings(std::size_t most) const {
  std::vector<std::string_view> values;
  ForEachValue(lists_, [&](const Field& field) {
    values.push_back(Message(field));
    return values.size() < most;
  });
  return values;
}

std::vector<float> TfFeature::Floats(std::size_t most) const {
  std::vector<float> values;
  ForEachValue(lists_, [&](const Field& field) {
    if (field.type == kVarint || field.type == kFixed64 || field.bytes.size() % 4 != 0) Fail("a list of broken floats");
    for (std::size_t at = 0; at < field.bytes.size() && values.size() < most; at += 4) {
      values.push_back(FloatAt(field.bytes.substr(at)));
    }
    return values.size() < most;
  });
  return values;
}

std::vector<std::int64_t> TfFeature::Int64s(std::size_t most) const {
  std::vector<std::int64_t> values;
  ForEachValue(lists_, [&](const Field& field) {
    if (field.type == kVarint) {
      values.push_back(static_cast<std::int64_t>(field.varint));
    } else {
      Fields packed(Message(field));
      while (!packed.AtEnd() && values.size() < most) values.push_back(static_cast<std::int64_t>(packed.Varint()));
    }
    return values.size() < most;
  });
  return values;
}

void TfFeature::Parse(std::string_view message) {
  Fields fields(message);
  for (Field field; fields.Next(field);) {
    Kind kind = Kind::kNone;
    if (field.number == 1) kind = Kind::kBytes;
    if (field.number == 2) kind = Kind::kFloat;
    if (field.number == 3) kind = Kind::kInt64;
    if (kind == Kind::kNone) continue;
    if (kind != kind_) lists_.clear();  // of a oneof the last one counts
    kind_ = kind;
    lists_.push_back(Message(field));
  }
}

TfExample::TfExample(std::string_view record) {
  Fields fields(record);
  for (Field field; fields.Next(field);) {
    if (field.number == 1) ParseFeatures(Message(field));
  }
}

const TfFeature* TfExample::Find(std::string_view name) const {
  const auto found = features_.find(name);
  return found == features_.end() ? nullptr : &found->second;
}

void TfExample::ParseFeatures(std::string_view message) {
  Fields fields(message);
  for (Field field; fields.Next(field);) {
    if (field.number == 1) ParseEntry(Message(field));
  }
}

void TfExample::ParseEntry(std::string_view message) {
  std::string_view name;
  TfFeature feature;
  Fields fields(message);
  for (Field field; fields.Next(field);) {
    if (field.number == 1) name = Message(field);
    if (field.number == 2) feature.Parse(Message(field));
  }
  if (features_.size() == kMostFeatures) Fail("more than 100,000 features");
  features_[name] = std::move(feature);  // of two entries with one key the last one counts
}

}  // namespace shardpack
