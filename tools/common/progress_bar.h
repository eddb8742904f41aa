// How far a command is, on standard error.
#pragma once

#include <chrono>
#include <string>

#include "shardpack/pack.h"

namespace shardpack::tools {

enum class ProgressStyle { kAuto, kPlain, kNone };  // kAuto: a bar on a terminal, else as kPlain

// On a terminal one line that is drawn again and again: bar, percent, rates, time left, bad inputs. Plain: a line every
// few seconds, none for a command that ends before the first is due. Clears the bar when it ends.
class ProgressBar {
 public:
  explicit ProgressBar(ProgressStyle style);
  ~ProgressBar() { Clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(const PackProgress& progress);
  // Before another line is written to standard error.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string Line(const PackProgress& progress, double seconds, bool bar) const;

  bool bar_ = false, plain_ = false, drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
  std::string stage_;
};

}  // namespace shardpack::tools
