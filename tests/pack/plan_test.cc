#include "libshard/pack/plan.h"

#include <catch2/catch.hpp>

using namespace shardpack;

namespace {

std::vector<Input> OfSizes(const std::vector<std::uint64_t>& sizes) {
  std::vector<Input> inputs;
  for (const std::uint64_t size : sizes) {
    inputs.emplace_back();
    inputs.back().size = size;
  }
  return inputs;
}

std::vector<std::uint64_t> Counts(const std::vector<InputRange>& ranges) {
  std::vector<std::uint64_t> counts;
  for (const InputRange& range : ranges) counts.push_back(range.size());
  return counts;
}

}  // namespace

TEST_CASE("a shard closes before its inputs pass the size", "[plan]") {
  CHECK(Counts(CutIntoShards(OfSizes({40, 40, 20, 1, 99, 1}), 100, std::nullopt)) ==
        std::vector<std::uint64_t>{3, 2, 1});
}

TEST_CASE("an input larger than a shard has one to itself", "[plan]") {
  CHECK(Counts(CutIntoShards(OfSizes({10, 500, 10}), 100, std::nullopt)) == std::vector<std::uint64_t>{1, 1, 1});
}

TEST_CASE("a shard closes after the number of records asked for", "[plan]") {
  CHECK(Counts(CutIntoShards(OfSizes({1, 1, 1, 1, 1}), 100, 2)) == std::vector<std::uint64_t>{2, 2, 1});
}

TEST_CASE("batches are the shard's inputs in order, a large one alone", "[plan]") {
  std::vector<std::uint64_t> sizes(200, 10);
  sizes[100] = 5 << 20;
  const auto inputs = OfSizes(sizes);
  std::uint64_t next = 0;
  for (const InputRange& batch : CutIntoBatches(inputs, {0, 200, 0})) {
    CHECK(batch.begin == next);
    CHECK((batch.bytes <= 1 << 20 || batch.size() == 1));
    next = batch.end;
  }
  CHECK(next == 200);
}

TEST_CASE("the request's digest knows options, keys, sizes and classes", "[plan]") {
  Inputs inputs;
  inputs.classes = {"a"};
  inputs.list = OfSizes({1, 2});
  inputs.list[0].key = "a/1.png";
  inputs.list[1].key = "a/2.png";
  PackOptions options;
  const Digest128 digest = RequestDigest(options, inputs);
  options.threads = 7;
  options.memory_bytes = 1 << 20;
  CHECK(RequestDigest(options, inputs) == digest);
  SECTION("a size") { inputs.list[1].size = 3; }
  SECTION("a key") { inputs.list[1].key = "a/3.png"; }
  SECTION("a class") { inputs.classes = {"b"}; }
  SECTION("the shard size") { options.shard_bytes = 1; }
  SECTION("the check") { options.verify_images = VerifyImages::kHeader; }
  SECTION("the name") { options.name = "n"; }
  CHECK_FALSE(RequestDigest(options, inputs) == digest);
}
