// The file of a plan: what goes in comes out, and what is damaged is refused.
#include <catch2/catch.hpp>

#include "tests/pack/made_source.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

namespace {

// Everything that can be read from a plan, as text.
std::string Dump(const Plan& plan) {
  const PlanHead& head = plan.head();
  std::string text = head.name + "|" + std::to_string(static_cast<int>(head.label_kind));
  const auto put = [&](const auto& what) {
    if constexpr (std::is_convertible_v<decltype(what), std::string_view>) {
      text.append("|").append(what);
    } else {
      text.append("|").append(std::to_string(what));
    }
  };
  for (const auto& [name, value] : head.options) text += "|" + name + "=" + value;
  for (const auto& name : head.classes) put(name);
  for (const auto& warning : head.warnings) put(warning);
  for (const auto& mark : head.source_marks) put(mark);
  for (const std::uint64_t n : {head.num_inputs, head.bytes, head.ignored_files, head.first_shard}) put(n);
  put(head.max_bad.value_or(77));
  put(head.overwrite);
  put(head.request_digest.Hex());
  put(head.base_dataset ? head.base_dataset->Hex() : "-");
  put(AsText(head.codecs.dictionary));
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
    const PlannedShard shard = plan.Shard(s);
    for (const std::uint64_t n : {plan.NumInputs(s), plan.NumBytes(s), shard.number, shard.bytes}) put(n);
    for (const PlannedInput& input : shard.inputs) {
      for (const auto& field : {input.key, input.metadata, input.locator, input.bad}) put(field);
      for (const std::uint64_t n :
           {input.size, input.sequence, std::uint64_t{input.key_skip}, std::uint64_t{input.source}})
        put(n);
      put(input.label);
      put(static_cast<int>(input.bad_code));
    }
  }
  return text;
}

void MakeSmall(PlanBench& bench) {
  bench.options.shard_records = 2;
  bench.options.name = "small";
  std::vector<MadeInput> inputs = OfKeys({"c/1", "c/22", "d/3"});
  inputs[0].metadata = "{\"a\":1}";
  inputs[1].locator = "at 512";
  inputs[2].bad = "missing";
  bench.Add("tree", inputs).ignored = 3;
}

std::string RandomText(std::uint64_t seed, std::size_t most) {
  std::string text;
  for (std::size_t i = seed % (most + 1); i > 0; --i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    text += static_cast<char>(seed >> 56);
  }
  return text;
}

}  // namespace

TEST_CASE("a plan gives back every field of every input", "[plan]") {
  std::vector<MadeInput> inputs;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const std::uint64_t mixed = i * 0x9E3779B97F4A7C15u;
    MadeInput input;
    input.key = "common/" + RandomText(mixed, 20) + std::to_string(i);
    input.size = mixed >> (i % 40 + 20);
    input.kind = LabelKind::kInteger;
    input.number = static_cast<std::int64_t>(mixed);
    if (i % 3 == 0) input.metadata = "{\"m\":" + std::to_string(i) + "}";
    if (i % 4 == 0) input.locator = RandomText(mixed * 3, 30);
    if (i % 7 == 0) input.bad = "bad " + std::to_string(i);
    inputs.push_back(input);
  }
  PlanBench bench;
  bench.options.shard_bytes = 1ull << 42;
  bench.options.max_bad = 5;
  bench.options.max_bad_share = 0.001;
  bench.Add("list", inputs, SourceKind::kCsv).ignored = 9;
  const PlanHead head = bench.Write();
  const Plan plan = Plan::Open(bench.File());
  CHECK(plan.head().request_digest == head.request_digest);
  CHECK(plan.head().options == head.options);
  CHECK(plan.head().num_inputs == 3000);
  CHECK(plan.head().ignored_files == 9);
  CHECK(plan.head().max_bad == 3);
  CHECK(plan.num_shards() > 3);
  std::uint64_t i = 0, bytes = 0;
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
    const PlannedShard shard = plan.Shard(s);
    REQUIRE(shard.inputs.size() == plan.NumInputs(s));
    for (const PlannedInput& input : shard.inputs) {
      const MadeInput& made = inputs[i];
      REQUIRE(input.key == made.key);
      REQUIRE(input.SourceKey() == made.key);
      REQUIRE(input.size == made.size);
      REQUIRE(input.label == made.number);
      REQUIRE(input.metadata == made.metadata);
      REQUIRE(input.locator == made.locator);
      REQUIRE(input.bad == made.bad);
      REQUIRE(input.sequence == i);
      bytes += input.size;
      ++i;
    }
  }
  CHECK(i == 3000);
  CHECK(plan.head().bytes == bytes);
}

TEST_CASE("a plan knows how many bad inputs a share is, to the last one", "[plan]") {
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("c/" + std::to_string(i));
  PlanBench bench;
  bench.Add("tree", OfKeys(keys));
  for (std::uint64_t percent = 0; percent <= 100; ++percent) {
    bench.options.max_bad_share = static_cast<double>(percent) / 100;
    CHECK(bench.Write().max_bad == percent);
  }
  bench.options.max_bad_share = 0.299;
  CHECK(bench.Write().max_bad == 29);
  bench.options.max_bad = 28;
  CHECK(bench.Write().max_bad == 28);
  bench.options.max_bad_share.reset();
  CHECK(bench.Write().max_bad == 28);
  bench.options.max_bad.reset();
  CHECK_FALSE(bench.Write().max_bad);
}

TEST_CASE("codecs with a dictionary and receipts come back", "[plan]") {
  PlanBench bench;
  bench.Add("tree", OfKeys({"a"}));
  CodecPlan codecs;
  codecs.rules = {{Encoding::kPng, Codec::kZstdDictionary}, {Encoding::kJpeg, Codec::kStored}};
  codecs.fallback = Codec::kZstdBlock;
  codecs.level = -5;
  codecs.tiny_bytes = 4096;
  codecs.dictionary = {std::byte{0}, std::byte{255}, std::byte{7}};
  codecs.receipts = {{"png", "zstd-dictionary", 1, 2, 3, 4}};
  SampleWork work;
  work.make_worker = [] { return [](Bytes) { return SampleRecord{}; }; };
  work.choose = [&](const auto&, std::uint64_t, std::uint64_t) { return codecs; };
  BuildPlan(bench.options, bench.sources, nullptr, bench.folder / "scratch", bench.File(), work);
  CHECK(Plan::Open(bench.File()).head().codecs == codecs);
}

TEST_CASE("every changed byte of a plan is an error", "[plan]") {
  PlanBench bench;
  MakeSmall(bench);
  bench.Write();
  const std::string whole = ReadFile(bench.File());
  const std::string dump = Dump(Plan::Open(bench.File()));
  const fs::path bent = bench.folder / "bent";
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string text = whole;
    text[i] = static_cast<char>(text[i] ^ (1 << i % 8));
    WriteFile(bent, text);
    try {
      Dump(Plan::Open(bent));
      FAIL("byte " << i << " may change unseen");
    } catch (const Error& error) {
      CHECK((error.code() == ErrorCode::kCorruption || error.code() == ErrorCode::kUnsupported));
    }
  }
}

TEST_CASE("a plan cut short or with more behind it is damaged", "[plan]") {
  PlanBench bench;
  MakeSmall(bench);
  bench.Write();
  const std::string whole = ReadFile(bench.File());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    WriteFile(bench.File(), whole.substr(0, size));
    CHECK_THROWS_WITH(Plan::Open(bench.File()), Contains("damaged plan"));
  }
  WriteFile(bench.File(), whole + '\0');
  CHECK_THROWS_WITH(Plan::Open(bench.File()), Contains("damaged plan"));
}

TEST_CASE("a plan of another version says so", "[plan]") {
  PlanBench bench;
  MakeSmall(bench);
  bench.Write();
  std::string text = ReadFile(bench.File());
  text[8] = 2;
  const std::uint64_t checksum = Xxh3_64(AsBytes(text.substr(0, 56)));
  for (std::size_t i = 0; i < 8; ++i) text[56 + i] = static_cast<char>(checksum >> 8 * i);
  WriteFile(bench.File(), text);
  try {
    Plan::Open(bench.File());
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK_THAT(error.what(), Contains("another version"));
  }
}

TEST_CASE("a missing plan is not found", "[plan]") {
  TemporaryFolder folder;
  try {
    Plan::Open(folder / "none");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kNotFound);
  }
}

TEST_CASE("a plan never writes through a link", "[plan]") {
  PlanBench bench;
  MakeSmall(bench);
  WriteFile(bench.folder / "precious", "keep");
  fs::create_symlink("precious", bench.File());
  bench.Write();
  CHECK(ReadFile(bench.folder / "precious") == "keep");
  CHECK(fs::is_regular_file(fs::symlink_status(bench.File())));
}
