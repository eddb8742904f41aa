// What a user may ask of train_ddp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shardpack/loader/transform.h"

namespace train_ddp {

struct Options {
  std::string data, test;     // datasets of the loader
  std::string raw, raw_test;  // class folders
  std::string model = "cnn";
  std::optional<std::uint32_t> epochs, batch_size;
  std::optional<double> learning_rate;
  std::optional<std::string> optimizer, transform;
  std::uint32_t size = 224, resize = 256;
  std::optional<double> dropout;
  std::optional<std::uint32_t> shift;
  std::uint64_t seed = 0;
  int threads = 0;
  std::string backend = "auto";
  double timeout_seconds = 120;
  std::uint32_t log_steps = 0;  // 0: no lines of single steps
  bool json = false;
  bool loader_only = false;

  // Filled in by Parse() from the model's recipe where the user gave nothing.
  std::uint32_t num_epochs = 0, rank_batch = 0, shift_pixels = 0;
  double base_learning_rate = 0, dropout_share = 0;
  bool use_adam = false;
  shardpack::loader::Transform train_transform, test_transform;

  bool from_raw() const { return !raw.empty(); }
};

// Nothing where the process is to end with `*status` (help was printed, or wrong usage was reported on stderr).
std::optional<Options> Parse(int argc, char** argv, int* status);

}  // namespace train_ddp
