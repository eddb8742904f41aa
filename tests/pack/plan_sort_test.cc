// Sorting more than fits into memory.
#include <algorithm>
#include <catch2/catch.hpp>

#include "libshard/pack/external_sort.h"
#include "tests/pack/made_source.h"

using namespace shardpack;
using namespace shardpack::testing;

namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

std::uint64_t Mix(std::uint64_t i) {
  i ^= i >> 31;
  i *= 0x9E3779B97F4A7C15u;
  return i ^ i >> 29;
}

// Keys that begin alike, some equal, some the beginning of others, with bytes above 127.
std::string KeyOf(std::uint64_t i) {
  const std::uint64_t mixed = Mix(i / 2);
  return std::string("class\xe9/") + std::string(mixed % 7, static_cast<char>(mixed >> 8)) +
         std::to_string(mixed % 50000);
}

Entries Sorted(const ExternalSorter& sorter) {
  Entries entries;
  sorter.ForEach([&](std::string_view key, std::string_view payload) { entries.emplace_back(key, payload); });
  return entries;
}

}  // namespace

TEST_CASE("entries come in order of key and payload whatever the budget and the threads", "[sort]") {
  constexpr std::uint64_t kEntries = 60000;
  Entries expected;
  for (std::uint64_t i = 0; i < kEntries; ++i) expected.emplace_back(KeyOf(i), std::to_string(Mix(i)));
  std::sort(expected.begin(), expected.end());  // std::string compares bytes as unsigned
  const std::uint64_t budget = GENERATE(0, 600 << 10, 1 << 20, 64 << 20);
  const int threads = GENERATE(1, 2, 7);
  TemporaryFolder folder;
  fs::create_directories(folder / "scratch");
  ExternalSorter sorter(folder / "scratch", budget, nullptr);
  std::vector<std::thread> adding;
  for (int t = 0; t < threads; ++t) {
    adding.emplace_back([&, t] {
      for (std::uint64_t i = static_cast<std::uint64_t>(t); i < kEntries; i += static_cast<std::uint64_t>(threads)) {
        sorter.Add(KeyOf(i), std::to_string(Mix(i)));
      }
    });
  }
  for (std::thread& thread : adding) thread.join();
  sorter.Finish();
  CHECK((sorter.num_spilled_runs() > 0) == (budget < 4 << 20));
  CHECK(fs::is_empty(folder / "scratch"));
  CHECK(Sorted(sorter) == expected);
  CHECK(Sorted(sorter) == expected);  // again
}

TEST_CASE("entries larger than a run's buffer pass", "[sort]") {
  TemporaryFolder folder;
  fs::create_directories(folder / "scratch");
  ExternalSorter sorter(folder / "scratch", 1, nullptr);
  Entries expected;
  for (int i = 0; i < 12; ++i) {
    const std::string key(std::size_t{700000} + static_cast<std::size_t>(i * 7919 % 12),
                          static_cast<char>('a' + i % 3));
    sorter.Add(key, std::string(static_cast<std::size_t>(i) * 1000, 'p'));
    expected.emplace_back(key, std::string(static_cast<std::size_t>(i) * 1000, 'p'));
  }
  sorter.Finish();
  std::sort(expected.begin(), expected.end());
  CHECK(sorter.num_spilled_runs() > 0);
  CHECK(Sorted(sorter) == expected);
}

TEST_CASE("no entries are no entries, and empty ones are kept", "[sort]") {
  TemporaryFolder folder;
  ExternalSorter none(folder / "scratch", 1 << 20, nullptr);
  none.Finish();
  CHECK(Sorted(none).empty());
  ExternalSorter some(folder / "scratch", 1 << 20, nullptr);
  some.Add("", "");
  some.Add("", "p");
  some.Add(std::string_view("\0", 1), "");
  some.Finish();
  CHECK(Sorted(some) == Entries{{"", ""}, {"", "p"}, {std::string(1, '\0'), ""}});
}

TEST_CASE("a scratch folder that is not there is an error, not a crash", "[sort]") {
  TemporaryFolder folder;
  ExternalSorter sorter(folder / "none", 1, nullptr);
  const auto fill = [&] {
    for (std::uint64_t i = 0; i < 100000; ++i) sorter.Add(KeyOf(i), "payload");
    sorter.Finish();
  };
  CHECK_THROWS_AS(fill(), Error);
}

TEST_CASE("many runs are merged to few, in order", "[sort]") {
  TemporaryFolder folder;
  fs::create_directories(folder / "scratch");
  ExternalSorter sorter(folder / "scratch", 1, nullptr);
  constexpr std::uint64_t kEntries = 700;
  const std::string payload(200000, 'x');
  for (std::uint64_t i = 0; i < kEntries; ++i) sorter.Add(std::to_string(Mix(i)), payload);
  sorter.Finish();
  CHECK(sorter.num_spilled_runs() > 256);
  std::string before;
  std::uint64_t count = 0;
  sorter.ForEach([&](std::string_view key, std::string_view) {
    CHECK(before < key);
    before = key;
    ++count;
  });
  CHECK(count == kEntries);
}

TEST_CASE("a plan is the same bytes whatever was spilled, and by how many threads", "[plan]") {
  const auto order = GENERATE(RecordOrder::kName, RecordOrder::kSource, RecordOrder::kShuffled);
  const auto plan_of = [&](std::uint64_t memory, int threads, bool clash) {
    std::vector<MadeInput> inputs(40000);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].key = "some/longer/path/for/the/sake/of/size/" + std::to_string(Mix(i));
      inputs[i].label_text = "class " + std::to_string(i % 10);
      inputs[i].metadata = "{\"line\":" + std::to_string(i) + "}";
    }
    PlanBench bench;
    bench.options.order = order;
    bench.options.memory_bytes = memory;
    bench.options.threads = threads;
    bench.options.shard_records = 1000;
    bench.Add("list", inputs, SourceKind::kCsv);
    if (clash) bench.Add("more", {inputs.begin(), inputs.begin() + 100}, SourceKind::kCsv);
    bench.Write();
    // The paths of the sources stand in the plan: compare what does not.
    const Plan plan = Plan::Open(bench.File());
    const std::string bytes = ReadFile(bench.File());
    std::uint64_t head = bytes.rfind("list: ");
    if (head == std::string::npos) head = bytes.find("from");
    CHECK(fs::is_empty(bench.folder / "scratch"));
    return plan.head().request_digest.Hex() + bytes.substr(64, bytes.find("from", bytes.size() / 2) - 64);
  };
  const bool clash = GENERATE(false, true);
  const std::string plain = plan_of(1ull << 30, 1, clash);
  CHECK(plain.size() > 500000);
  CHECK(plan_of(1 << 20, 1, clash) == plain);
  CHECK(plan_of(4 << 20, 2, clash) == plain);
  CHECK(plan_of(12 << 20, 7, clash) == plain);
}
