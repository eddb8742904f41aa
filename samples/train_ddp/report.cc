#include "samples/train_ddp/report.h"

#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace train_ddp {
namespace {

[[gnu::format(printf, 1, 2)]] std::string Print(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

}  // namespace

std::string ToJson(const EpochFigures& f) {
  nlohmann::ordered_json json = {{"epoch", f.epoch},
                                 {"loss", f.loss},
                                 {"accuracy", f.accuracy()},
                                 {"train_accuracy", f.train_accuracy},
                                 {"samples", f.samples},
                                 {"evaluated", f.evaluated},
                                 {"substituted", f.substituted},
                                 {"masked", f.masked},
                                 {"images_per_s", f.images_per_s()},
                                 {"consumer_wait_percent", f.consumer_wait_percent},
                                 {"gpu_busy_percent", nullptr},
                                 {"seconds", f.seconds},
                                 {"evaluation_seconds", f.evaluation_seconds},
                                 {"parameters_digest", f.parameters_digest}};
  if (f.gpu_busy_percent) json["gpu_busy_percent"] = *f.gpu_busy_percent;
  return json.dump();
}

std::string ToLine(const EpochFigures& f, std::uint64_t num_epochs) {
  std::string line = Print("epoch %llu/%llu  loss %.4f  %s %.2f %%  %.0f images/s  waiting %.1f %%  ", f.epoch + 1ull,
                           num_epochs + 0ull, f.loss, f.test_accuracy ? "accuracy" : "training accuracy",
                           100 * f.accuracy(), f.images_per_s(), f.consumer_wait_percent);
  if (f.gpu_busy_percent) line += Print("GPU busy %.0f %%  ", *f.gpu_busy_percent);
  line += Print("%.1f s", f.seconds);
  if (f.test_accuracy) line += Print("  tested %llu in %.1f s", f.evaluated + 0ull, f.evaluation_seconds);
  if (f.substituted + f.masked > 0) line += Print("  bad records %llu", f.substituted + f.masked + 0ull);
  return line;
}

std::string ToJson(const LoadingFigures& f) {
  const nlohmann::ordered_json json = {
      {"epoch", f.epoch}, {"samples", f.samples}, {"load_images_per_s", f.images_per_s()}, {"seconds", f.seconds}};
  return json.dump();
}

std::string ToLine(const LoadingFigures& f, std::uint64_t num_epochs) {
  return Print("epoch %llu/%llu  loaded %llu images  %.0f images/s  %.2f s", f.epoch + 1ull, num_epochs + 0ull,
               f.samples + 0ull, f.images_per_s(), f.seconds);
}

}  // namespace train_ddp
