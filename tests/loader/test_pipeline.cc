#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <thread>

#include "shardpack/error.h"
#include "tests/loader/picture_dataset.h"

namespace shardpack::loader {
namespace {

using Catch::Contains;

LoaderOptions Options(std::uint32_t batch_size = 6) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.seed = 7;
  options.transform = TrainTransform(16);
  return options;
}

const PictureDataset& Pictures() {
  static const PictureDataset data({});
  return data;
}

TEST_CASE("batches do not depend on threads or depth", "[loader]") {
  const auto want = AllBatches(Pictures().Open(), Options());
  REQUIRE(want.size() == 7);
  for (int threads : {1, 2, 3, 5, 8}) {
    for (std::uint32_t depth : {1u, 2u, 9u}) {
      LoaderOptions options = Options();
      options.threads = threads;
      options.prefetch_depth = depth;
      CAPTURE(threads, depth);
      CHECK(AllBatches(Pictures().Open(), options) == want);
    }
  }
  CHECK(AllBatches(Pictures().Open(), Options(), 1) != want);
}

TEST_CASE("ranks together deliver every sample once, and padding only where it is marked", "[loader]") {
  for (Tail tail : {Tail::kPad, Tail::kExact}) {
    std::map<std::int64_t, int> times;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      LoaderOptions options = Options();
      options.tail = tail;
      options.world.size = 3;
      options.world.rank = rank;
      const auto batches = AllBatches(Pictures().Open(), options);
      REQUIRE(batches.size() == 3);
      for (const BatchCopy& batch : batches) {
        CHECK(static_cast<std::size_t>(std::count(batch.valid.begin(), batch.valid.end(), true)) == batch.num_valid);
        for (std::size_t k = 0; k < 6; ++k) {
          if (batch.valid[k]) ++times[batch.indices[k]];
          CHECK(batch.source_indices[k] == batch.indices[k]);
        }
      }
      CHECK(batches.back().global_valid == 4);
    }
    CHECK(times.size() == 40);
    for (const auto& [index, count] : times) CHECK(count == 1);
  }
}

TEST_CASE("three times the ring's depth can be held, and the data stays", "[loader][ring]") {
  LoaderOptions options = Options(2);
  options.prefetch_depth = 2;
  options.held_batches = 1;
  DataLoader loader(Pictures().Open(), options);
  const auto want = AllBatches(Pictures().Open(), options);
  std::vector<Batch> held;
  auto epoch = loader.Epoch(0);
  while (held.size() < 9) held.push_back(epoch.Next().value());
  std::size_t i = 0;
  for (; i < 9; ++i) CHECK(CopyOf(held[i]) == want[i]);
  held.clear();
  while (auto batch = epoch.Next()) CHECK(CopyOf(*batch) == want[i++]);
  CHECK(i == want.size());
}

TEST_CASE("holding more than memory has throws instead of waiting, and goes on after a release", "[loader][ring]") {
  LoaderOptions options = Options(2);
  options.prefetch_depth = 1;
  options.held_batches = 1;
  options.threads = 1;
  options.memory_bytes = 40000;  // some 14,000 for scratch memory; a batch is 1856 bytes
  DataLoader loader(Pictures().Open(), options);
  auto epoch = loader.Epoch(0);
  std::deque<Batch> held;
  std::string message;
  try {
    while (auto batch = epoch.Next()) held.push_back(*batch);
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(held.size() >= 13);
  CHECK(message == "you hold " + std::to_string(held.size()) + " batches: clone them or raise held_batches");
  const auto want = AllBatches(Pictures().Open(), options);
  CHECK(CopyOf(held.back()) == want[held.size() - 1]);
  const std::size_t next = held.size();
  held.pop_front();
  CHECK(CopyOf(epoch.Next().value()) == want[next]);
}

TEST_CASE("a slot counts copies and holds, and comes back from any thread, also after the loader's end",
          "[loader][ring]") {
  std::optional<Batch> kept;
  std::shared_ptr<void> hold;
  BatchCopy want;
  {
    DataLoader loader(Pictures().Open(), Options());
    auto epoch = loader.Epoch(0);
    kept = epoch.Next();
    want = CopyOf(*kept);
    for (int i = 0; i < 3; ++i) {
      Batch batch = epoch.Next().value();
      hold = batch.hold();
      std::thread([b = std::move(batch)]() mutable { b = Batch(); }).join();
    }
  }
  CHECK(CopyOf(*kept) == want);
  std::thread([b = std::move(*kept), h = std::move(hold)] {}).join();
}

TEST_CASE("an iteration can be left at any time", "[loader]") {
  LoaderOptions options = Options(4);
  options.threads = 3;
  DataLoader loader(Pictures().Open(), options);
  for (int i = 0; i < 200; ++i) {
    auto epoch = loader.Epoch(static_cast<std::uint64_t>(i));
    for (int taken = 0; taken < i % 4; ++taken) CHECK(epoch.Next());
  }
  CHECK_THROWS_WITH(
      [&] {
        for (const Batch& batch : loader.Epoch(0)) {
          if (batch.step() == 1) throw std::runtime_error("the consumer's own");
        }
      }(),
      "the consumer's own");
}

TEST_CASE("several epochs are iterated at once", "[loader]") {
  DataLoader loader(Pictures().Open(), Options());
  auto first = loader.Epoch(0), second = loader.Epoch(1);
  const auto want_first = AllBatches(Pictures().Open(), Options(), 0),
             want_second = AllBatches(Pictures().Open(), Options(), 1);
  for (std::size_t i = 0; i < want_first.size(); ++i) {
    CHECK(CopyOf(first.Next().value()) == want_first[i]);
    CHECK(CopyOf(second.Next().value()) == want_second[i]);
  }
  CHECK_FALSE(first.Next());
  CHECK_FALSE(first.Next());
}

TEST_CASE("a run goes on from its state at another world and batch size, with the same pictures", "[loader][state]") {
  std::map<std::int64_t, std::vector<std::byte>> want, got;
  const auto add = [](const BatchCopy& batch, auto& to) {
    const std::size_t bytes = batch.images.size() / batch.valid.size();
    for (std::size_t k = 0; k < batch.valid.size(); ++k) {
      if (!batch.valid[k]) continue;
      const auto* begin = batch.images.data() + k * bytes;
      CHECK(to.emplace(batch.indices[k], std::vector<std::byte>(begin, begin + bytes)).second);
    }
  };
  for (const BatchCopy& batch : AllBatches(Pictures().Open(), Options(), 3)) add(batch, want);

  DataLoader loader(Pictures().Open(), Options(8));
  CHECK(loader.state().consumed == 0);
  State state;
  {
    auto epoch = loader.Epoch(3);
    add(CopyOf(epoch.Next().value()), got);
    Batch second = epoch.Next().value();
    add(CopyOf(second), got);
    state = State::FromJson(second.state_after().ToJson());
    CHECK(loader.state() == state);
  }
  CHECK(state.consumed == 16);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    LoaderOptions options = Options(5);
    options.world.size = 2;
    options.world.rank = rank;
    DataLoader resumed(Pictures().Open(), options);
    resumed.Restore(state);
    CHECK(resumed.state() == state);
    auto epoch = resumed.Epoch(3);
    CHECK(epoch.num_steps() == 3);
    while (auto batch = epoch.Next()) add(CopyOf(*batch), got);
    CHECK(resumed.state().consumed == 40);
    CHECK(resumed.Epoch(3).num_steps() == 4);  // the position counts once
  }
  CHECK(got == want);
}

TEST_CASE("a state of something else is refused with both values named", "[loader][state]") {
  DataLoader loader(Pictures().Open(), Options());
  const auto refused = [&](auto change, const std::string& theirs, const std::string& ours) {
    State state = loader.state();
    change(state);
    CHECK_THROWS_WITH(loader.Restore(state), Contains(theirs) && Contains(ours));
  };
  const State own = loader.state();
  refused([](State& s) { s.dataset = "00112233445566778899aabbccddeeff"; }, "00112233445566778899aabbccddeeff",
          own.dataset);
  refused([](State& s) { s.order = "0011223344556677"; }, "0011223344556677", own.order);
  refused([](State& s) { s.seed = 99; }, "99", "7");
  refused([](State& s) { s.consumed = 41; }, "41", "40");
}

TEST_CASE("options that cannot be honoured are refused by name", "[loader]") {
  const auto refused = [](auto change, const std::string& words) {
    LoaderOptions options = Options();
    change(options);
    CHECK_THROWS_WITH(DataLoader(Pictures().Open(), options), Contains(words));
  };
  refused([](LoaderOptions& o) { o.batch_size = 0; }, "batch_size");
  refused([](LoaderOptions& o) { o.world.size = 0; }, "world.size");
  refused([](LoaderOptions& o) { o.world.rank = 1; }, "world.rank = 1");
  refused([](LoaderOptions& o) { o.prefetch_depth = 0; }, "prefetch_depth");
  refused([](LoaderOptions& o) { o.threads = -1; }, "threads");
  refused([](LoaderOptions& o) { o.output.dtype = DType::kInt64; }, "output.dtype");
  refused([](LoaderOptions& o) { o.transform = EvalTransform(20, 24); }, "resize = 20");
  refused([](LoaderOptions& o) { o.transform = NoTransform(); }, "one size");
  refused([](LoaderOptions& o) { o.memory_bytes = 5000; }, "memory_bytes = 5000");
  refused([](LoaderOptions& o) { o.output.dtype = DType::kFloat32, o.transform.deviation[1] = 0; }, "deviation");
  refused([](LoaderOptions& o) { o.output.dtype = DType::kFloat32, o.transform.mean[2] = NAN; }, "mean");
  refused([](LoaderOptions& o) { o.batch_size = 4000000000u; }, "does not hold one batch of 3172000000000 bytes");
  refused([](LoaderOptions& o) { o.world.size = o.batch_size = 0xffffffffu; }, "world.size x batch_size");
  refused([](LoaderOptions& o) { o.batch_size = 16, o.world.size = 3, o.tail = Tail::kDrop; },
          "40 samples are fewer than one global batch of 48: no step under drop");
}

TEST_CASE("the largest numbers give whole epochs, and states that are read back", "[loader][state]") {
  constexpr std::uint64_t kLargest = ~std::uint64_t{0};
  LoaderOptions options = Options();
  options.seed = kLargest;
  options.threads = 64;
  options.prefetch_depth = options.held_batches = 0xffffffffu;
  DataLoader loader(Pictures().Open(), options);
  std::set<std::int64_t> seen;
  for (const Batch& batch : loader.Epoch(kLargest)) {
    const BatchCopy copy = CopyOf(batch);
    seen.insert(copy.indices.begin(), copy.indices.begin() + copy.num_valid);
  }
  CHECK(seen.size() == 40);
  const State end = loader.state();
  CHECK(State::FromJson(end.ToJson()) == end);
  CHECK(end.ToJson().size() < 200);
  loader.Restore(end);
  EpochIterator rest = loader.Epoch(kLargest);
  CHECK(rest.num_steps() == 0);
  CHECK_FALSE(rest.Next());
}

TEST_CASE("fewer samples than a global batch are one step under pad, and ranks beyond them hold padding alone",
          "[loader]") {
  for (const auto& [rank, valid] : {std::pair{0u, 15u}, {2u, 10u}, {3u, 0u}}) {
    LoaderOptions options = Options(15);
    options.world.size = 4;
    options.world.rank = rank;
    const auto batches = AllBatches(Pictures().Open(), options);
    REQUIRE(batches.size() == 1);
    CHECK(batches[0].num_valid == valid);
    CHECK(batches[0].global_valid == 40);
    CHECK(batches[0].state_after.consumed == 40);
  }
}

TEST_CASE("little memory reduces the depth and says so", "[loader]") {
  LoaderOptions options = Options();
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& line) { warnings.push_back(line); };
  options.memory_bytes = 20000;  // half for scratch memory; a batch is 4992 bytes
  const auto batches = AllBatches(Pictures().Open(), options);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Contains("prefetch_depth is 1"));
  options.memory_bytes = 1 << 30;
  CHECK(batches == AllBatches(Pictures().Open(), options));
}

TEST_CASE("the report counts what was delivered", "[loader]") {
  DataLoader loader(Pictures().Open(), Options());
  auto epoch = loader.Epoch(0);
  while (epoch.Next()) {
  }
  const Report report = epoch.report();
  CHECK(report.images == 40);
  CHECK(report.steps == 7);
  CHECK(report.bytes_read > 40 * 400);
  CHECK(report.decode_seconds > 0);
  CHECK(report.substituted + report.masked == 0);
}

TEST_CASE("a child of fork is told to open after it", "[loader][fork]") {
  DataLoader loader(Pictures().Open(), Options());
  auto epoch = std::make_unique<EpochIterator>(loader.Epoch(0));
  auto batch = epoch->Next();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int refused = 0;
    const auto try_call = [&](auto call) {
      try {
        call();
      } catch (const Error& error) {
        refused += std::string(error.what()).find("open after fork") != std::string::npos;
      }
    };
    try_call([&] { epoch->Next(); });
    try_call([&] { loader.Epoch(1); });
    try_call([&] { loader.Restore({}); });
    batch.reset();  // neither this nor the iterator's end may wait for threads that are not here
    epoch.reset();
    _exit(refused);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 3));
  int rest = 0;
  while (epoch->Next()) ++rest;
  CHECK(rest == 6);
}

}  // namespace
}  // namespace shardpack::loader
