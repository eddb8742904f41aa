#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/manifest.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;
using Catch::Contains;

namespace {

Manifest Full() {
  Manifest m;
  m.name = "digits \"0\" to 9";
  m.label_kind = LabelKind::kInteger;
  m.classes = {"a", "b\n\x01", "\xFF\xFE", ""};
  m.shards = {{"shard-00000-5f3a9c01.shard", 3, 8192, {1, 2}, {3, 4}}, {"\xFF.shard", 2, 100, {5, 6}, {7, 8}}};
  m.records = 5;
  m.bytes_in = 12345;
  m.bytes_out = 8292;
  m.bad_inputs = 7;
  m.options = {{"images", "keep"}, {"on_error", "skip"}};
  m.encodings = {{"jpeg", 4}, {"png", 1}};
  m.codecs = {{"stored", {4, 40, 40}}, {"zstd", {1, 90, 20}}};
  m.widths = {{10, 2}, {4000000000, 3}};
  m.heights = {{7, 5}};
  m.request_digest = {0xAB, 0xCD};
  m.dataset_digest = {0x12, 0x34};
  m.creator = "shardpack 1.0.0";
  return m;
}

// With what not every dataset has: five pixels of 10 and 20 of the first channel, 255 and 0 of the others.
Manifest WithAllFields() {
  Manifest m = Full();
  m.receipts = {{"jpeg", "zstd-dictionary", 100, 90000, 40000, 1100}, {"png", "stored", 7, 800, 800, 0}};
  m.statistics = ChannelSums{2, 5, {70, 1275, 0}, {1100, 325125, 0}};
  m.revisions = {{"append", {9, 8}, 12}, {"amend", {7, 6}, 0}};
  return m;
}

bool Same(const Manifest& a, const Manifest& b) { return a.ToJson() == b.ToJson(); }

// The manifest with one piece of its text exchanged.
std::string Changed(const std::string& from, const std::string& to) {
  std::string text = Full().ToJson();
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string ChangedOfAll(const std::string& from, const std::string& to) {
  std::string text = WithAllFields().ToJson();
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string Refused(const std::string& text, ErrorCode code = ErrorCode::kCorruption) {
  try {
    Manifest::FromJson(text, "d/dataset.json");
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK(error.where().path == "d/dataset.json");
    return error.reason();
  }
  return "nothing thrown";
}

}  // namespace

TEST_CASE("a manifest reads back as it was written", "[manifest]") {
  const Manifest a = Full();
  const Manifest b = Manifest::FromJson(a.ToJson(), "x");
  CHECK(b.name == a.name);
  CHECK(b.format == "record");
  CHECK(b.label_kind == LabelKind::kInteger);
  CHECK(b.classes == a.classes);
  REQUIRE(b.shards.size() == 2);
  CHECK(b.shards[1].file == "\xFF.shard");
  CHECK(b.shards[0].digest == Digest128{1, 2});
  CHECK(b.shards[0].index_digest == Digest128{3, 4});
  CHECK(b.records == 5);
  CHECK(b.bytes_in == 12345);
  CHECK(b.bad_inputs == 7);
  CHECK(b.options == a.options);
  CHECK(b.encodings == a.encodings);
  CHECK(b.codecs.at("zstd").stored_bytes == 20);
  CHECK(b.widths == a.widths);
  CHECK(b.heights == a.heights);
  CHECK(b.request_digest == a.request_digest);
  CHECK(b.dataset_digest == a.dataset_digest);
  CHECK(b.creator == a.creator);
  CHECK(Same(a, b));
  CHECK(Same(Manifest{}, Manifest::FromJson(Manifest{}.ToJson(), "x")));
}

TEST_CASE("receipts, statistics and revisions read back as they were written", "[manifest]") {
  const Manifest a = WithAllFields();
  const Manifest b = Manifest::FromJson(a.ToJson(), "x");
  CHECK(b.receipts == a.receipts);
  CHECK(b.statistics == a.statistics);
  CHECK(b.revisions == a.revisions);
  CHECK(Same(a, b));
}

TEST_CASE("a manifest without the later fields reads as one that has none", "[manifest]") {
  const std::string text = Full().ToJson();
  CHECK_THAT(text, !Contains("receipts") && !Contains("statistics") && !Contains("revisions"));
  const Manifest b = Manifest::FromJson(text, "x");
  CHECK(b.receipts.empty());
  CHECK_FALSE(b.statistics.has_value());
  CHECK(b.revisions.empty());
}

TEST_CASE("each kind of label has its name in the manifest", "[manifest]") {
  const std::pair<LabelKind, const char*> kinds[] = {{LabelKind::kClass, "class"},
                                                     {LabelKind::kInteger, "integer"},
                                                     {LabelKind::kList, "list"},
                                                     {LabelKind::kFloat, "float"}};
  for (const auto& [kind, name] : kinds) {
    Manifest m = Full();
    m.label_kind = kind;
    CHECK_THAT(m.ToJson(), Contains("\"label_kind\": \"" + std::string(name) + "\","));
    CHECK(Manifest::FromJson(m.ToJson(), "x").label_kind == kind);
  }
}

TEST_CASE("statistics beyond 63 bits are left out", "[manifest]") {
  Manifest m = WithAllFields();
  m.statistics->sum_of_squares[1] = std::uint64_t{1} << 63;
  CHECK_THAT(m.ToJson(), !Contains("statistics"));
}

TEST_CASE("wrong receipts, statistics and revisions are refused with the field's name", "[manifest]") {
  CHECK_THAT(Refused(ChangedOfAll("\"sample_records\": 7", "\"sample_records\": -7")),
             Contains("\"receipts[1].sample_records\""));
  CHECK_THAT(Refused(ChangedOfAll("\"codec\": \"stored\"", "\"codec\": 0")), Contains("\"receipts[1].codec\""));
  CHECK_THAT(Refused(ChangedOfAll("\"decode_ns_per_record\": 1100", "\"decode\": 1100")),
             Contains("\"receipts[0].decode_ns_per_record\" is missing"));
  CHECK_THAT(Refused(ChangedOfAll("\"sum\": [70, 1275, 0]", "\"sum\": [70, 1275]")), Contains("\"statistics.sum\""));
  CHECK_THAT(Refused(ChangedOfAll("\"sum\": [70, 1275, 0]", "\"sum\": [70, 1276, 0]")),
             Contains("\"statistics.sum\" is more than"));
  // 980 is what five pixels of 14 have, the least for this sum.
  CHECK(Manifest::FromJson(ChangedOfAll("[1100, ", "[980, "), "x").statistics->sum_of_squares[0] == 980);
  CHECK_THAT(Refused(ChangedOfAll("[1100, ", "[979, ")), Contains("\"statistics.sum_of_squares\""));
  CHECK_THAT(Refused(ChangedOfAll("[1100, ", "[17851, ")), Contains("\"statistics.sum_of_squares\""));
  CHECK_THAT(Refused(ChangedOfAll("\"pictures\": 2", "\"pictures\": 9223372036854775808")),
             Contains("\"statistics.pictures\" is out of range"));
  CHECK_THAT(Refused(ChangedOfAll("\"command\": \"amend\"", "\"command\": []")), Contains("\"revisions[1].command\""));
  CHECK_THAT(Refused(ChangedOfAll(Digest128{7, 6}.Hex(), "7")), Contains("\"revisions[1].request\""));
}

TEST_CASE("the manifest's text is ASCII or UTF-8, a shard a line", "[manifest]") {
  const std::string text = Full().ToJson();
  CHECK(IsUtf8(text));
  CHECK_THAT(text, Contains("\n    {\"file\": \"shard-00000-5f3a9c01.shard\", \"records\": 3, \"bytes\": 8192, "
                            "\"digest\": \"00000000000000010000000000000002\""));
  CHECK_THAT(text, Contains("{\"hex\": \"fffe\"}"));
  CHECK_THAT(text, Contains("\"b\\u000a\\u0001\""));
}

TEST_CASE("a manifest that is wrong is refused with the field's name", "[manifest]") {
  CHECK_THAT(Refused(""), Contains("not JSON"));
  CHECK_THAT(Refused("[]"), Contains("not a JSON object"));
  CHECK_THAT(Refused("{}"), Contains("\"format_version\" is missing"));
  CHECK_THAT(Refused(Full().ToJson().substr(0, 300)), Contains("not JSON"));
  CHECK_THAT(Refused(Changed("\"records\": 5", "\"records\": 6")), Contains("\"records\" is not the sum"));
  CHECK_THAT(Refused(Changed("\"bytes_out\": 8292", "\"bytes_out\": 1")), Contains("\"bytes_out\" is not the sum"));
  CHECK_THAT(Refused(Changed("\"records\": 3", "\"records\": -3")), Contains("\"shards[0].records\""));
  CHECK_THAT(Refused(Changed("\"records\": 3", "\"records\": 3.0")), Contains("\"shards[0].records\""));
  CHECK_THAT(Refused(Changed("\"records\": 3", "\"records\": 18446744073709551615")),
             Contains("\"shards[0].records\" is out of range"));
  CHECK_THAT(Refused(Changed("\"bytes\": 8192", "\"bytes\": 9223372036854775807")), Contains("sums up"));
  CHECK_THAT(Refused(Changed("\"bytes\": 8192", "\"bites\": 8192")), Contains("\"shards[0].bytes\" is missing"));
  CHECK_THAT(Refused(Changed("00000000000000010", "0000000000000001g")), Contains("\"shards[0].digest\""));
  CHECK_THAT(Refused(Changed("\"images\": \"keep\"", "\"images\": 1")), Contains("\"options.images\" is not a string"));
  CHECK_THAT(Refused(Changed("\"label_kind\": \"integer\"", "\"label_kind\": \"string\"")), Contains("\"label_kind\""));
  CHECK_THAT(Refused(Changed("{\"hex\": \"fffe\"}", "{\"hex\": \"ff0\"}")), Contains("\"classes[2]\""));
  CHECK_THAT(Refused(Changed("{\"hex\": \"fffe\"}", "{\"hex\": \"61\"}")), Contains("\"classes[2]\""));
  CHECK_THAT(Refused(Changed("{\"hex\": \"fffe\"}", "[]")), Contains("\"classes[2]\" is not a string"));
  CHECK_THAT(Refused(Changed("[10, 2]", "[10]")), Contains("\"widths[0]\""));
  CHECK_THAT(Refused(Changed("[10, 2]", "[4000000000, 2]")), Contains("\"widths[1]\" is out of order"));
  CHECK_THAT(Refused(Changed("[7, 5]", "[7, 4]")), Contains("\"heights\" does not count every record once"));
  CHECK_THAT(Refused(Changed("\"format_version\": 1", "\"format_version\": 0")), Contains("\"format_version\""));
  CHECK_THAT(Refused(Changed("\"format_version\": 1", "\"format_version\": 2"), ErrorCode::kUnsupported),
             Contains("newer"));
}

TEST_CASE("a manifest never leads out of its folder", "[manifest]") {
  for (const char* name : {"", ".", "..", "/etc/passwd", "../x.shard", "a/b.shard", "x\\u0000.shard"}) {
    CHECK_THAT(Refused(Changed("shard-00000-5f3a9c01.shard", name)), Contains("\"shards[0].file\""));
  }
}

TEST_CASE("a manifest cut at any length is refused", "[manifest]") {
  const std::string text = Full().ToJson();
  for (std::size_t size = 0; size + 2 < text.size(); ++size)
    CHECK_THROWS_AS(Manifest::FromJson(text.substr(0, size), "x"), Error);
}

TEST_CASE("committing puts the manifest in place and leaves nothing else", "[manifest]") {
  const TempFolder folder;
  Manifest().Commit(folder.path());
  Full().Commit(folder.path());
  CHECK(Same(Manifest::Load(folder.path()), Full()));
  const auto files = std::distance(std::filesystem::directory_iterator(folder.path()), {});
  CHECK(files == 1);
  CHECK_THROWS_WITH(Full().Commit(folder / "none"), Contains("No such file or directory"));
}

TEST_CASE("a commit writes through no link", "[manifest]") {
  const TempFolder folder;
  const auto precious = folder / "precious";
  std::ofstream(precious) << "kept";
  std::filesystem::create_symlink("precious", folder / ".dataset.json.partial");
  Full().Commit(folder.path());
  std::string text;
  std::ifstream(precious) >> text;
  CHECK(text == "kept");
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / "dataset.json")));
  CHECK(Manifest::Load(folder.path()).ToJson() == Full().ToJson());
}

TEST_CASE("a folder without a manifest is no dataset", "[manifest]") {
  const TempFolder folder;
  try {
    Manifest::Load(folder.path());
    FAIL("loaded");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kNotFound);
    CHECK_THAT(error.what(), Contains("no dataset.json in"));
  }
}

TEST_CASE("the dataset digest is XXH3-128 over the records' fields and the classes", "[manifest]") {
  // Spelled out from docs/formats/manifest.md.
  std::string bytes;
  const auto number = [&](std::uint64_t n, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(n >> (8 * i));
  };
  number(3, 4), bytes += "key", number(static_cast<std::uint64_t>(-2), 8), number(2, 4), bytes += "{}", number(1, 1),
      number(0x1122334455667788, 8);
  number(1, 4), bytes += "k", number(7, 8), number(0, 4), number(2, 1), number(9, 8);
  number(2, 4), number(1, 4), bytes += "a", number(0, 4);
  DatasetDigester digester;
  digester.Add("key", -2, AsBytes("{}"), Encoding::kJpeg, 0x1122334455667788);
  digester.Add("k", 7, {}, Encoding::kPng, 9);
  CHECK(digester.Finish({"a", ""}) == Xxh3_128(AsBytes(bytes)));
}
