// What train_ddp prints: for people, or an object an epoch for machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace train_ddp {

struct EpochFigures {
  std::uint64_t epoch = 0;
  double loss = 0;
  double train_accuracy = 0;
  std::optional<double> test_accuracy;
  std::uint64_t samples = 0, evaluated = 0, substituted = 0, masked = 0;  // of all ranks
  double seconds = 0, evaluation_seconds = 0;
  double consumer_wait_percent = 0;
  std::optional<double> gpu_busy_percent;
  std::string parameters_digest;

  double accuracy() const { return test_accuracy.value_or(train_accuracy); }
  double images_per_s() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};

std::string ToJson(const EpochFigures& figures);
// "epoch 3/12  loss 0.1042  accuracy 97.40 %  2810 images/s  waiting 1.2 %  1.6 s"
std::string ToLine(const EpochFigures& figures, std::uint64_t num_epochs);

struct LoadingFigures {
  std::uint64_t epoch = 0, samples = 0;
  double seconds = 0;
  double images_per_s() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};

std::string ToJson(const LoadingFigures& figures);
std::string ToLine(const LoadingFigures& figures, std::uint64_t num_epochs);

}  // namespace train_ddp
