// Lists that were cut or harmed: every outcome but an Error with a line or a whole reading is a defect, and under the
// sanitizers so is each stray access.
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/pack/json_object.h"
#include "libshard/pack/source.h"
#include "shardpack/error.h"
#include "tests/pack/archives/collecting_sink.h"
#include "tests/pack/made_tree.h"

namespace shardpack::testing {
namespace {

constexpr std::string_view kCsv =
    "\xef\xbb\xbfpath,label,\"no\"\"te\"\r\n\r\na.jpg,1,x\r\n\"b, \"\"c\"\".jpg\",-2.5,\"two\r\nlines\"\n\nd.jpg,1e3,";
constexpr std::string_view kCsvLists = "label,path\n\"[1, 5, 7]\",a.jpg\n[],b.jpg\n[9007199254740993],c.jpg\n";
constexpr std::string_view kJsonl =
    "{\"path\": \"a.jpg\", \"label\": [1, 5], \"x\": {\"y\": [1.10, null, \"\\u00e9\"]}}\n\n"
    "{\"l\\u0061bel\": [ ], \"path\": \"b\\\\.jpg\"}\r\n{\"path\":\"c\\\"\",\"label\":[-7],\"z\":\"}],{\"}";

// Returns whether the list was read whole.
bool ReadThrough(const fs::path& path, SourceKind kind, std::string_view content) {
  WriteFile(path, content);
  PackOptions options;
  options.sources = {path};
  options.from = kind;
  try {
    CollectingSink sink;
    OpenSources(options).at(0)->Scan(nullptr, sink);
    for (const CollectedInput& input : sink.inputs) {
      CHECK_FALSE(input.key.empty());
      CHECK(input.sequence > 0);
    }
    return true;
  } catch (const Error& e) {
    CHECK_THAT(e.what(), Catch::Matchers::Contains(": line "));
    return false;
  }
}

void Harm(SourceKind kind, std::string_view content) {
  TemporaryFolder folder;
  const fs::path path = folder / "list";
  REQUIRE(ReadThrough(path, kind, content));
  for (std::size_t size = 0; size < content.size(); ++size) ReadThrough(path, kind, content.substr(0, size));
  std::mt19937 draw(7);
  for (std::size_t at = 0; at < content.size(); ++at) {
    for (const char c : {'"', ',', '\n', '\r', '\\', '[', '{', '\0', '\xff', static_cast<char>(draw())}) {
      std::string bent(content);
      bent[at] = c;
      ReadThrough(path, kind, bent);
      bent = content;
      bent.insert(at, 1, c);
      ReadThrough(path, kind, bent);
    }
  }
}

TEST_CASE("harmed CSV lists give rows or an error with a line", "[source][fuzz]") {
  Harm(SourceKind::kCsv, kCsv);
  Harm(SourceKind::kCsv, kCsvLists);
}

TEST_CASE("harmed JSON lines give rows or an error with a line", "[source][fuzz]") { Harm(SourceKind::kJsonl, kJsonl); }

TEST_CASE("members are taken out of an object however it is written", "[source][fuzz]") {
  const auto take = [](std::string_view json, std::string_view name) {
    const std::string_view names[] = {name};
    std::optional<std::string> values[1];
    const std::string rest = TakeMembers(json, names, values);
    return rest + " <- " + values[0].value_or("(none)");
  };
  CHECK(take("{}", "a") == "{} <- (none)");
  CHECK(take(" { \"a\" : 1 } ", "a") == "{} <- 1");
  CHECK(take("{\"b\":2,\"a\":{\"a\":[1, 2]},\"c\":3}", "a") == "{\"b\":2,\"c\":3} <- {\"a\":[1,2]}");
  CHECK(take("{\"b\":{\"a\":1},\"\\u0061\":\" x \"}", "a") == "{\"b\":{\"a\":1}} <- \" x \"");
  CHECK(take("{\"a\":\"\\\"}\",\"b\":\"{\\\\\"}", "a") == "{\"b\":\"{\\\\\"} <- \"\\\"}\"");
  CHECK_THROWS_WITH(take("{\"a\":1,\"a\":2}", "a"), Catch::Matchers::Contains("two members"));
  for (const char* json : {"", "[", "[]", "1", "{", "{\"a\"}", "{\"a\":1,}", "{\"a\":1}}", "{\"a\":01}"}) {
    CHECK_THROWS_AS(take(json, "a"), Error);
  }
}

}  // namespace
}  // namespace shardpack::testing
