// Parts of reading archives that can be looked at alone.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "libshard/pack/crc32c.h"
#include "libshard/pack/forward_bytes.h"
#include "libshard/pack/key_set.h"
#include "libshard/pack/member_name.h"
#include "libshard/pack/sample_label.h"
#include "libshard/pack/tf_example.h"
#include "shardpack/error.h"

using Catch::Matchers::Contains;

namespace shardpack {
namespace {

// From RFC 3720, B.4, and the polynomial's usual check value.
TEST_CASE("CRC-32C gives the published values, with and without the processor's instruction", "[crc32c]") {
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending += c;
  const std::vector<std::pair<std::string, std::uint32_t>> known = {
      {"", 0},
      {"123456789", 0xe3069283},
      {std::string(32, '\0'), 0x8a9136aa},
      {std::string(32, '\xff'), 0x62a8ab43},
      {ascending, 0x46dd794e},
      {{ascending.rbegin(), ascending.rend()}, 0x113fdb5c},
  };
  for (const auto& [text, crc] : known) {
    CHECK(Crc32c(AsBytes(text)) == crc);
    CHECK(PortableCrc32c(AsBytes(text)) == crc);
  }
}

TEST_CASE("both ways of CRC-32C agree at every length and alignment", "[crc32c]") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7 + i / 9);
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; size + begin <= text.size(); ++size) {
      const Bytes part = AsBytes(text).subspan(begin, size);
      REQUIRE(Crc32c(part) == PortableCrc32c(part));
    }
  }
}

TEST_CASE("a set of keys knows what it was given while it grows", "[key_set]") {
  KeySet set;
  CHECK_FALSE(set.Has("0"));
  for (int i = 0; i < 100000; ++i) REQUIRE(set.Insert(std::to_string(i)));
  for (int i = 0; i < 100000; ++i) {
    REQUIRE_FALSE(set.Insert(std::to_string(i)));
    REQUIRE(set.Has(std::to_string(i)));
    REQUIRE_FALSE(set.Has(std::to_string(i + 100000)));
  }
}

TEST_CASE("a member's key ends at the first dot of its last part", "[member_name]") {
  const auto parts = [](std::string_view name) {
    const MemberName split = SplitMemberName(name);
    return std::vector<std::string>{std::string(split.path), std::string(split.key), std::string(split.extension)};
  };
  using Parts = std::vector<std::string>;
  CHECK(parts("a.jpg") == Parts{"a.jpg", "a", "jpg"});
  CHECK(parts("././v1.0/a.seg.png") == Parts{"v1.0/a.seg.png", "v1.0/a", "seg.png"});
  CHECK(parts("/abs/a") == Parts{"abs/a", "abs/a", ""});
  CHECK(parts("x.y/z") == Parts{"x.y/z", "x.y/z", ""});
  CHECK(parts("a.") == Parts{"a.", "a", ""});
  CHECK(parts("") == Parts{"", "", ""});
  CHECK(SplitMemberName("a/.b/c.jpg").hidden);
  CHECK(SplitMemberName("a/.c.jpg").hidden);
  CHECK(SplitMemberName("__MACOSX/c.jpg").hidden);
  CHECK_FALSE(SplitMemberName("./a.b/c.jpg").hidden);
  CHECK(SplitMemberName("a/../c.jpg").leaves);
  CHECK_FALSE(SplitMemberName("a/..c.jpg/d").leaves);
}

TEST_CASE("a float label is the shortest text that reads back as it", "[sample_label]") {
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789.125, 1e23}) {
    const std::string text = FloatLabel(value).text;
    CHECK(std::strtod(text.c_str(), nullptr) == value);
  }
  CHECK(FloatLabel(0.1).text == "0.1");
  CHECK_THROWS_WITH(FloatLabel(1e300 * 1e300), Contains("finite"));
  CHECK_THROWS_WITH(LabelOfText("1e999"), Contains("1e999"));
}

TEST_CASE("objects nested a million deep are split without harm", "[sample_label]") {
  const std::string deep = "{\"a\":" + std::string(1000000, '[') + std::string(1000000, ']') + ",\"label\":1}";
  CHECK(ParseLabelledObject(deep).label->number == 1);
  CHECK_THROWS_AS(ParseLabelledObject(deep.substr(0, 1000000)), Error);
}

TEST_CASE("what follows a magic by chance is no compressed file", "[forward_bytes]") {
  CHECK(WrappingOf("\x1f\x8b\x08") == Wrapping::kGzip);
  CHECK(WrappingOf("\x28\xb5\x2f\xfd") == Wrapping::kZstd);
  CHECK(WrappingOf("\x5a\x2a\x4d\x18") == Wrapping::kZstd);
  CHECK(WrappingOf("\x78\x9c") == Wrapping::kZlib);
  CHECK(WrappingOf("\x78\x01") == Wrapping::kZlib);
  CHECK(WrappingOf("\x78\x9d") == Wrapping::kPlain);
  CHECK(WrappingOf("x.jpg") == Wrapping::kPlain);
  CHECK(WrappingOf("") == Wrapping::kPlain);
}

// Field `number` of `bytes`, as protobuf has it. Precondition: shorter than 128 bytes.
std::string Field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string Entry(const std::string& name, const std::string& feature) {
  return Field(1, Field(1, Field(1, name) + Field(2, feature)));
}

TEST_CASE("of features and kinds that come twice the last one counts, and pieces of a list are joined",
          "[tf_example]") {
  const std::string record =
      Entry("x", Field(1, Field(1, "old"))) +
      Entry("x", Field(1, Field(1, "a")) + Field(3, Field(1, "\x01\x02")) + Field(3, Field(1, "\x03")));
  const TfExample example(record);
  REQUIRE(example.features().size() == 1);
  const TfFeature& feature = *example.Find("x");
  REQUIRE(feature.kind() == TfFeature::Kind::kInt64);
  CHECK(feature.Int64s(10) == std::vector<std::int64_t>{1, 2, 3});
  CHECK(feature.Int64s(2) == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("fields that are not known are passed over, and broken ones refused", "[tf_example]") {
  const std::string known = Entry("x", Field(1, Field(1, "a")));
  const std::string unknown = std::string("\x48\x96\x01", 3) + std::string("\x51", 1) + std::string(8, 'f') +
                              std::string("\x5d", 1) + std::string(4, 'f') + Field(12, "more");
  CHECK(TfExample(unknown + known + unknown).Find("x")->ByteStrings(1).at(0) == "a");
  for (const std::string& broken : {std::string("\x0a\x05"
                                                "a"),
                                    std::string("\x08"), std::string("\x0b"), std::string("\x02\x00", 2),
                                    std::string(11, '\xff'), std::string("\x0a"), std::string("\x08\x01")}) {
    CHECK_THROWS_WITH(TfExample(broken), Contains("tf.train.Example"));
  }
  const std::string odd = Entry("x", Field(2, Field(1, "abc")));
  CHECK_THROWS_WITH(TfExample(odd).Find("x")->Floats(5), Contains("floats"));
}

}  // namespace
}  // namespace shardpack
