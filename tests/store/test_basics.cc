#include <catch2/catch.hpp>
#include <cerrno>

#include "libshard/store/checksum.h"
#include "shardpack/error.h"
#include "shardpack/record.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;

namespace {

// Byte i is i % 251: the form the answers were computed for.
std::vector<std::byte> Ramp(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  return bytes;
}

}  // namespace

TEST_CASE("XXH3 gives the answers of the reference implementation", "[checksum]") {
  CHECK(Xxh3_64({}) == 0x2d06800538d394c2);
  CHECK(Xxh3_64(AsBytes("a")) == 0xe6c632b61e964e1f);
  CHECK(Xxh3_64(AsBytes("abc")) == 0x78af5f94892f3950);
  CHECK(Xxh3_64(Ramp(200)) == 0xf42a8864feaf0703);
  CHECK(Xxh3_64(Ramp(4096)) == 0x7135ffa504f1bc71);
  CHECK(Xxh3_64(Ramp(100000)) == 0x42c23aeead96750d);
  CHECK(Xxh3_128({}).Hex() == "99aa06d3014798d86001c324468d497f");
  CHECK(Xxh3_128(AsBytes("abc")).Hex() == "06b05ab6733a618578af5f94892f3950");
  CHECK(Xxh3_128(Ramp(100000)).Hex() == "54182c58bbb1337c42c23aeead96750d");
}

TEST_CASE("XXH3 gives the same for bytes in pieces as for the whole, at any address", "[checksum]") {
  const std::vector<std::byte> bytes = Ramp(100000);
  for (const std::size_t piece : {1, 7, 64, 1000, 99999}) {
    Xxh3Stream128 stream;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      stream.Add(Bytes(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    CHECK(stream.Finish() == Xxh3_128(bytes));
  }
  const std::vector<std::byte> copy(bytes.begin() + 3, bytes.begin() + 3003);
  CHECK(Xxh3_64(Bytes(bytes).subspan(3, 3000)) == Xxh3_64(copy));
}

TEST_CASE("a digest's text is 32 lower-case digits and reads back", "[record]") {
  const Digest128 digest{0x00ff102030405060, 0xfedcba9876543210};
  CHECK(digest.Hex() == "00ff102030405060fedcba9876543210");
  CHECK(Digest128::FromHex(digest.Hex()) == digest);
  for (const char* bad : {"", "00ff", "00FF102030405060fedcba9876543210", "00ff102030405060fedcba987654321g",
                          "00ff102030405060fedcba98765432100"}) {
    CHECK_THROWS_AS(Digest128::FromHex(bad), Error);
  }
}

TEST_CASE("an error names path, record and byte in front of its reason", "[error]") {
  const Error error(ErrorCode::kCorruption, {"shard-00012-5f3a9c01.shard", 4711, 80331776}, "checksum mismatch");
  CHECK(std::string(error.what()) == "shard-00012-5f3a9c01.shard: record 4711 at byte 80331776: checksum mismatch");
  CHECK(error.reason() == "checksum mismatch");
  CHECK(std::string(Error(ErrorCode::kIo, {"a\n", {}, {}}, "x").what()) == "a\\n: x");
  CHECK(std::string(Error(ErrorCode::kIo, {"a", {}, 5}, "x").what()) == "a: at byte 5: x");
  CHECK(std::string(Error(ErrorCode::kIo, "x").what()) == "x");
}

TEST_CASE("a refusal of the system says what was tried, on what, and why", "[error]") {
  try {
    ThrowSystemError(ENOENT, "open", "a\xFF");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kNotFound);
    CHECK(error.where().path == "a\xFF");
    CHECK(std::string(error.what()) == "cannot open a\\xff: No such file or directory");
  }
  CHECK_THROWS_WITH(ThrowSystemError(ENOSPC, "write", "b"), "cannot write b: No space left on device");
}

TEST_CASE("what is not printable UTF-8 is escaped", "[error]") {
  CHECK(Escaped("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80") == "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
  CHECK(Escaped("a\\b\n\t\r\x1B[0m\x7F") == "a\\\\b\\n\\t\\x0d\\x1b[0m\\x7f");
  CHECK(Escaped("\xFF\xC0\x80\xED\xA0\x80\xE2\x82") == "\\xff\\xc0\\x80\\xed\\xa0\\x80\\xe2\\x82");
  CHECK(Escaped("\xE2\x80\xAE") == "\\xe2\\x80\\xae");  // would turn the rest of the line around
}

TEST_CASE("UTF-8 is told from what only looks like it", "[error]") {
  for (const char* good :
       {"", "a", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    CHECK(IsUtf8(good));
  for (const char* bad : {"\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xC2", "\xE2\x82"}) {
    CHECK_FALSE(IsUtf8(bad));
  }
}
