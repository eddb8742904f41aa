// Loads a dataset as a training job would, without the job: batches are taken and dropped.
//
//   bench_load_photos DATASET [--transform train --batch 256 --dtype float32 --layout nchw --threads 2 --warm]
//
// Prints one JSON object an epoch.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shardpack/loader/data_loader.h"
#include "tests/bench/clock.h"

namespace {

using namespace shardpack::loader;

struct Options {
  std::string dataset;
  std::string transform = "train";
  std::uint32_t batch = 256;
  std::string dtype = "float32";
  std::string layout = "nchw";
  int threads = 0;
  int epochs = 1;
  std::uint64_t seed = 0;
  bool warm = false;
};

// Reads every shard once, so that storage is not what is measured.
void Warm(const shardpack::Dataset& dataset) {
  std::vector<char> buffer(4 << 20);
  for (std::uint32_t s = 0; s < dataset.num_shards(); ++s) {
    std::ifstream file(dataset.shard(s).path(), std::ios::binary);
    while (file.read(buffer.data(), buffer.size())) {
    }
  }
}

LoaderOptions ToLoaderOptions(const Options& options) {
  LoaderOptions loader;
  loader.batch_size = options.batch;
  loader.seed = options.seed;
  loader.transform = TransformFromName(options.transform);
  loader.output = {options.dtype == "uint8" ? DType::kUint8 : DType::kFloat32,
                   options.layout == "nhwc" ? Layout::kNhwc : Layout::kNchw};
  loader.threads = options.threads;
  loader.warn = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  return loader;
}

void Run(const Options& options) {
  const shardpack::Dataset dataset = shardpack::Dataset::Open(options.dataset);
  if (options.warm) Warm(dataset);
  DataLoader loader(dataset, ToLoaderOptions(options));
  for (int e = 0; e < options.epochs; ++e) {
    const shardpack::bench::Stopwatch watch;
    EpochIterator epoch = loader.Epoch(e);
    double first_batch_seconds = 0;
    std::uint64_t images = 0;
    while (auto batch = epoch.Next()) {
      if (images == 0) first_batch_seconds = watch.Seconds();
      images += batch->num_valid();
    }
    const double seconds = watch.Seconds();
    const Report report = epoch.report();
    const nlohmann::ordered_json line = {
        {"epoch", e},
        {"images", images},
        {"seconds", seconds},
        {"images_per_s", images / seconds},
        {"cpu_ms_per_image", 1000 * watch.Cpu() / images},
        {"first_batch_ms", 1000 * first_batch_seconds},
        {"consumer_wait_percent", report.consumer_wait_percent()},
        {"threads", loader.options().threads},
        {"substituted", report.substituted},
        {"read_seconds", report.read_seconds},
        {"decode_seconds", report.decode_seconds},
        {"transform_seconds", report.transform_seconds},
        {"peak_rss_mib", shardpack::bench::PeakRssMib()},
    };
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Loads a dataset and drops the batches."};
  Options options;
  app.add_option("dataset", options.dataset)->required();
  app.add_option("--transform", options.transform)->check(CLI::IsMember({"none", "train", "eval", "classic"}));
  app.add_option("--batch", options.batch)->check(CLI::PositiveNumber);
  app.add_option("--dtype", options.dtype)->check(CLI::IsMember({"uint8", "float32"}));
  app.add_option("--layout", options.layout)->check(CLI::IsMember({"nhwc", "nchw"}));
  app.add_option("--threads", options.threads);
  app.add_option("--epochs", options.epochs)->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed);
  app.add_flag("--warm", options.warm, "Read the shards once before the clock starts");
  CLI11_PARSE(app, argc, argv);
  try {
    Run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_load_photos: %s\n", error.what());
    return 3;
  }
  return 0;
}
