// Memory does not grow with the number of inputs.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/pack/made_source.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARDPACK_SANITIZED 1
#endif

using namespace shardpack;
using namespace shardpack::testing;

namespace {

// Lists as many paths as it is told to, without holding them: i * step modulo a prime runs through all numbers below
// it.
class CountingSource : public MadeSource {
 public:
  CountingSource(std::uint64_t inputs, SourceKind kind) : MadeSource("many", {}, kind), inputs_(inputs) {}

  void Scan(const std::atomic<bool>*, InputSink& sink) override {
    ParallelFor(0, inputs_, 4096, [&](std::uint64_t i) {
      const std::string key = KeyOf(i * 48271 % kPrime);
      FoundInput found;
      found.key = key;
      found.size = 100000;
      found.sequence = kind() == SourceKind::kFolder ? 0 : i;
      found.label.text = std::string_view(key).substr(0, 9);
      sink.Add(found);
    });
  }

  static std::string KeyOf(std::uint64_t n) {
    std::string digits = std::to_string(1000000000 + n);
    return "n" + digits.substr(digits.size() - 3) + "_class/image_" + digits + ".JPEG";
  }

 private:
  static constexpr std::uint64_t kPrime = 2147483647;
  const std::uint64_t inputs_;
};

std::uint64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
  }
  return 0;
}

// From here on the peak is of what follows, not of the tests before.
void ForgetPeak() { std::ofstream("/proc/self/clear_refs") << 5; }

std::string OptionOr(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

}  // namespace

TEST_CASE("a million inputs are planned in order inside the budget", "[plan]") {
  // More by hand: SHARDPACK_PLAN_INPUTS=10000000 SHARDPACK_PLAN_MEMORY=2147483648.
  const std::uint64_t inputs = std::stoull(OptionOr("SHARDPACK_PLAN_INPUTS", "1000000"));
  const std::uint64_t memory = std::stoull(OptionOr("SHARDPACK_PLAN_MEMORY", "33554432"));
  const auto order = GENERATE(RecordOrder::kName, RecordOrder::kSource);
  PlanBench bench;
  bench.options.order = order;
  bench.options.memory_bytes = memory;
  bench.options.sources = {bench.folder / "scratch"};
  bench.sources.push_back(
      std::make_unique<CountingSource>(inputs, order == RecordOrder::kName ? SourceKind::kFolder : SourceKind::kCsv));
  ForgetPeak();
  const std::uint64_t before = PeakBytes();
  const auto start = std::chrono::steady_clock::now();
  const PlanHead head = bench.Write();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::uint64_t grown = PeakBytes() - before;
  INFO(inputs << " inputs in " << seconds << " s, peak memory grew by " << (grown >> 20) << " MiB, plan of "
              << (fs::file_size(bench.File()) >> 20) << " MiB");
  if (inputs > 1000000)
    WARN("planned " << inputs << " in " << seconds << " s; peak grew by " << (grown >> 20) << " MiB");
  CHECK(head.num_inputs == inputs);
  CHECK(head.bytes == inputs * 100000);
  CHECK(head.classes.size() == 1000);
#ifndef SHARDPACK_SANITIZED
  CHECK(grown < memory / 2 + (8 << 20));
#endif

  const Plan plan = Plan::Open(bench.File());
  std::string key_before;
  std::uint64_t count = 0, sequence = 0;
  bool ascending = true;
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
    const PlannedShard shard = plan.Shard(s);
    for (const PlannedInput& input : shard.inputs) {
      if (order == RecordOrder::kName) {
        ascending = ascending && key_before < input.key;
        key_before = input.key;
      } else {
        ascending = ascending && input.sequence == sequence++;
      }
      ascending = ascending && head.classes[static_cast<std::size_t>(input.label)] == input.key.substr(0, 9);
      ++count;
    }
  }
  CHECK(ascending);
  CHECK(count == inputs);
}
