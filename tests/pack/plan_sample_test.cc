// The sample that codecs are chosen by.
#include <algorithm>
#include <cstring>
#include <catch2/catch.hpp>
#include <set>

#include "libshard/pack/codec_sample.h"
#include "tests/pack/made_source.h"

using namespace shardpack;
using namespace shardpack::testing;

namespace {

std::vector<std::string> ManyKeys(int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back("c/" + std::to_string(100000 + i));
  return keys;
}

std::vector<std::uint64_t> LowestOf(const std::vector<std::string>& keys, std::size_t count) {
  std::vector<std::uint64_t> hashes;
  for (const std::string& key : keys) hashes.push_back(Xxh3_64(AsBytes(key)));
  std::sort(hashes.begin(), hashes.end());
  hashes.resize(std::min(hashes.size(), count));
  return hashes;
}

// A source whose inputs' bytes are their keys.
class KeyedSource : public MadeSource {
 public:
  using MadeSource::MadeSource;
  void Read(const PlannedInput& input, std::byte* to) override {
    ++reads;
    std::memcpy(to, input.key.data(), input.size);
  }
};

std::vector<MadeInput> WithTheirSizes(const std::vector<std::string>& keys) {
  std::vector<MadeInput> inputs = OfKeys(keys);
  for (MadeInput& input : inputs) input.size = input.key.size();
  return inputs;
}

std::vector<std::uint64_t> HashesOf(const std::vector<SampleRecord>& sample) {
  std::vector<std::uint64_t> hashes;
  for (const SampleRecord& record : sample) hashes.push_back(Xxh3_64(record.bytes));
  return hashes;
}

// Bytes that nothing compresses.
std::vector<std::byte> Noise(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(seed >> 56);
  }
  return bytes;
}

std::size_t Worked(std::size_t inputs, Encoding encoding, std::size_t size, bool noise) {
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<MadeSource>("tree", std::vector<MadeInput>{}));
  LowestHashes sample;
  for (std::size_t i = 0; i < inputs; ++i) {
    SampledInput input;
    input.key = std::to_string(i);
    input.size = 1;
    sample.Add(i, std::move(input));
  }
  std::atomic<std::uint64_t> seed{1};
  const auto records = WorkSample(
      sample, sources,
      [&] {
        return [&](Bytes) {
          return SampleRecord{encoding, noise ? Noise(size, seed++) : std::vector<std::byte>(size)};
        };
      },
      nullptr);
  return records.size();
}

}  // namespace

TEST_CASE("the sample is of the 1,024 keys with the lowest hashes, in their order", "[plan]") {
  const auto keys = ManyKeys(5000);
  PlanBench bench;
  bench.options.compression = Compression::kAuto;
  bench.options.sources = {bench.folder / "scratch"};
  bench.sources.push_back(std::make_unique<KeyedSource>("tree", WithTheirSizes(keys)));
  bench.options.threads = GENERATE(1, 2);
  bench.Write();
  CHECK(HashesOf(bench.sample) == LowestOf(keys, 1024));
}

TEST_CASE("of streams the same sample is taken while they are scanned, and nothing is read", "[plan]") {
  const auto keys = ManyKeys(5000);
  PlanBench bench;
  bench.options.compression = Compression::kAuto;
  bench.options.threads = 1;
  MadeSource& stream = bench.Add("in.tar.gz", WithTheirSizes(keys), SourceKind::kTar);
  stream.stream = true;
  bench.Write();
  CHECK(HashesOf(bench.sample) == LowestOf(keys, 1024));
  CHECK(stream.reads == 0);
}

TEST_CASE("nothing is read where nothing is compressed", "[plan]") {
  PlanBench bench;
  MadeSource& tree = bench.Add("tree", OfKeys(ManyKeys(100)));
  bench.Write();
  CHECK(tree.reads == 0);
  CHECK(bench.sample.empty());
}

TEST_CASE("bad inputs and what filters leave out are not in the sample", "[plan]") {
  std::vector<MadeInput> inputs = WithTheirSizes({"a", "b", "c", "d"});
  inputs[0].bad = "gone";
  PlanBench bench;
  bench.options.compression = Compression::kAuto;
  bench.options.exclude = {"d"};
  bench.options.sources = {bench.folder / "scratch"};
  bench.sources.push_back(std::make_unique<KeyedSource>("tree", inputs));
  bench.Write();
  std::set<std::string> sampled;
  for (const SampleRecord& record : bench.sample) sampled.emplace(AsText(record.bytes));
  CHECK(sampled == std::set<std::string>{"b", "c"});
}

TEST_CASE("a sample ends before it passes 64 MiB, but is never empty", "[plan]") {
  LowestHashes sample;
  const auto add = [&](std::uint64_t hash, std::uint64_t size) {
    SampledInput input;
    input.key = std::to_string(hash);
    input.size = size;
    sample.Add(hash, std::move(input));
  };
  const auto hashes = [&] {
    std::vector<std::uint64_t> list;
    for (const auto& [id, input] : sample.inputs()) list.push_back(id.first);
    return list;
  };
  add(50, 40 << 20);
  add(60, 30 << 20);  // passes
  add(70, 1);         // beyond what was dropped
  CHECK(hashes() == std::vector<std::uint64_t>{50});
  add(40, 20 << 20);
  CHECK(hashes() == std::vector<std::uint64_t>{40, 50});
  add(30, 80 << 20);
  CHECK(hashes() == std::vector<std::uint64_t>{30});
  add(10, 1);
  CHECK(hashes() == std::vector<std::uint64_t>{10});
}

TEST_CASE("photographs that zstd gains nothing from are sampled 64 times", "[plan]") {
  CHECK(Worked(500, Encoding::kJpeg, 20000, true) == 64);
  CHECK(Worked(500, Encoding::kJpeg, 20000, false) == 500);  // these gain
  CHECK(Worked(500, Encoding::kPng, 300, true) == 500);      // a dictionary may help
  CHECK(Worked(500, Encoding::kBmp, 20000, true) == 500);
}

TEST_CASE("inputs that fail are left out of the sample", "[plan]") {
  PlanBench bench;
  bench.options.compression = Compression::kAuto;
  bench.Add("tree", OfKeys({"a", "b", "c"}));
  SampleWork work;
  work.make_worker = [] {
    return [calls = 0](Bytes) mutable {
      if (calls++ % 2 == 0) throw Error(ErrorCode::kBadInput, "not an image");
      return SampleRecord{Encoding::kPng, {std::byte{1}}};
    };
  };
  std::size_t records = 0;
  work.choose = [&](const auto& sample, std::uint64_t, std::uint64_t) {
    records = sample.size();
    return CodecPlan{};
  };
  ArenaOf(1).execute(
      [&] { BuildPlan(bench.options, bench.sources, nullptr, bench.folder / "scratch", bench.File(), work); });
  CHECK(records == 1);
}

TEST_CASE("what the system refuses to every input ends planning", "[plan]") {
  class Refused : public MadeSource {
   public:
    using MadeSource::MadeSource;
    void Read(const PlannedInput&, std::byte*) override { throw OutOfResources{EMFILE, "open"}; }
  };
  PlanBench bench;
  bench.options.compression = Compression::kAuto;
  bench.options.sources = {bench.folder / "scratch"};
  bench.sources.push_back(std::make_unique<Refused>("tree", OfKeys({"a"})));
  try {
    bench.Write();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kIo);
    CHECK(std::string(error.what()) == "cannot open tree/a: Too many open files");
  }
  CHECK_FALSE(fs::exists(bench.File()));
}
