// Reads all records of a dataset in a random order, warm, on one thread, each checked against its checksum.
//
//   bench_read_random DATASET [ROUNDS]
//
// Prints one JSON object a round.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "shardpack/dataset.h"
#include "shardpack/loader/order.h"
#include "tests/bench/clock.h"

namespace {

using shardpack::Dataset;

// The numbers of one epoch's order, drawn before the clock starts.
std::vector<std::uint64_t> RandomOrder(std::uint64_t n, std::uint64_t epoch) {
  const shardpack::loader::Permutation permutation(n, /*seed=*/1, epoch);
  std::vector<std::uint64_t> order(n);
  for (std::uint64_t p = 0; p < n; ++p) order[p] = permutation(p);
  return order;
}

std::uint64_t ReadAll(const Dataset& dataset, const std::vector<std::uint64_t>& order, std::vector<std::byte>& buffer) {
  std::uint64_t bytes = 0;
  for (std::uint64_t index : order) {
    dataset.Read(index, buffer);
    bytes += buffer.size();
  }
  return bytes;
}

void Run(const std::string& path, int rounds) {
  const Dataset dataset = Dataset::Open(path);
  std::vector<std::byte> buffer;
  ReadAll(dataset, RandomOrder(dataset.size(), 0), buffer);  // page cache, tables, first touch of every index block
  for (int round = 1; round <= rounds; ++round) {
    const std::vector<std::uint64_t> order = RandomOrder(dataset.size(), round);
    const shardpack::bench::Stopwatch watch;
    const std::uint64_t bytes = ReadAll(dataset, order, buffer);
    const double seconds = watch.Seconds();
    std::printf("{\"records\":%llu,\"bytes\":%llu,\"seconds\":%.6f,\"records_per_s\":%.0f}\n",
                static_cast<unsigned long long>(dataset.size()), static_cast<unsigned long long>(bytes), seconds,
                dataset.size() / seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: bench_read_random DATASET [ROUNDS]\n");
    return 2;
  }
  try {
    Run(argv[1], argc > 2 ? std::atoi(argv[2]) : 5);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_read_random: %s\n", error.what());
    return 3;
  }
  return 0;
}
