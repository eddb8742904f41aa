#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/shard_reader.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;

namespace {

// Lets all threads go at once, so that they meet at the first touch.
void Race(int num_threads, const std::function<void(int)>& run) {
  std::atomic<int> waiting{num_threads};
  std::vector<std::thread> threads;
  for (int t = 0; t < num_threads; ++t) {
    threads.emplace_back([&, t] {
      for (--waiting; waiting > 0;) std::this_thread::yield();
      run(t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("many threads may touch the same blocks first", "[threads]") {
  const TempFolder folder;
  const ShardBuilder built = EverySection();
  WriteFile(folder / "a.shard", EverySectionBytes());
  for (int round = 0; round < 50; ++round) {
    const ShardReader shard = ShardReader::Open(folder / "a.shard");
    std::atomic<int> wrong{0};
    Race(8, [&](int t) {
      std::vector<std::byte> bytes;
      for (int k = 0; k < 4; ++k) {
        const std::uint64_t i = static_cast<std::uint64_t>(t + k) % 4;
        const TestRecord& truth = built.records()[i];
        shard.Read(i, bytes);
        wrong += bytes != truth.raw || shard.Key(i) != truth.key || shard.Find(truth.key) != i ||
                 AsText(shard.Metadata(i)) != truth.metadata || shard.class_names() != built.options.class_names ||
                 shard.NumClassmates(truth.label) != 2;
      }
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("a bad block is an error for each thread that touches it, every time", "[threads]") {
  const TempFolder folder;
  BentShard bent(EverySectionBytes());
  bent.bytes()[bent.SectionOffset(1)] ^= std::byte{1};
  WriteFile(folder / "a.shard", bent.bytes());
  const ShardReader shard = ShardReader::Open(folder / "a.shard");
  std::atomic<int> thrown{0};
  Race(8, [&](int) {
    for (std::uint64_t i = 0; i < 4; ++i) {
      try {
        shard.Info(i);
      } catch (const Error&) {
        ++thrown;
      }
    }
  });
  CHECK(thrown == 32);
}

TEST_CASE("many threads may open the shards of a dataset at once", "[threads]") {
  const TempFolder folder;
  ShardBuilder more;
  more.options.class_names = EverySection().options.class_names;
  for (int i = 0; i < 20; ++i) more.Add({std::string("more/").append(std::to_string(i)), i % 3, Noise(100, i)});
  WriteDataset(folder.path(), {EverySection(), more});
  for (int round = 0; round < 20; ++round) {
    const Dataset dataset = Dataset::Open(folder.path());
    std::atomic<int> wrong{0};
    Race(8, [&](int) {
      const Dataset copy = dataset;
      std::vector<std::byte> bytes;
      for (std::uint64_t i = 0; i < copy.size(); ++i) {
        copy.Read(i, bytes);
        wrong += bytes != (i < 4 ? EverySection().records()[i].raw : more.records()[i - 4].raw);
      }
    });
    REQUIRE(wrong == 0);
  }
}
