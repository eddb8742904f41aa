#include "tools/common/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/common/human.h"

namespace shardpack::tools {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainInterval = std::chrono::seconds(5);
constexpr int kBarWidth = 24;
constexpr std::size_t kRoomForBar = 72;  // characters a line; in fewer, the numbers matter more

std::size_t TerminalWidth() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// By bytes, which take the time; by records where sizes are not known.
double Share(const PackProgress& p) {
  if (p.bytes_total > 0) return std::min(1.0, static_cast<double>(p.bytes_done) / static_cast<double>(p.bytes_total));
  return p.inputs_total > 0 ? std::min(1.0, static_cast<double>(p.inputs_done) / static_cast<double>(p.inputs_total))
                            : 0;
}

std::string Bar(double share) {
  const int full = static_cast<int>(share * kBarWidth);
  std::string bar = "[";
  for (int i = 0; i < kBarWidth; ++i) bar += i < full ? '=' : i == full ? '>' : ' ';
  return bar + "] ";
}

}  // namespace

ProgressBar::ProgressBar(ProgressStyle style) {
  bar_ = style == ProgressStyle::kAuto && isatty(STDERR_FILENO) == 1;
  plain_ = !bar_ && style != ProgressStyle::kNone;
}

std::string ProgressBar::Line(const PackProgress& p, double seconds, bool bar) const {
  const double share = Share(p);
  std::string line(p.stage);
  if (p.inputs_total == 0) return line + " ...";
  line += ' ';
  char text[96];
  if (bar) line += Bar(share);
  std::snprintf(text, sizeof text, "%3.0f%%  %s/%s", share * 100, HumanCount(p.inputs_done).c_str(),
                HumanCount(p.inputs_total).c_str());
  line += text;
  if (seconds > 0.05) {
    std::snprintf(text, sizeof text, "  %s/s  %.0f MB/s",
                  HumanCount(static_cast<std::uint64_t>(static_cast<double>(p.inputs_done) / seconds)).c_str(),
                  static_cast<double>(p.bytes_done) / seconds / 1e6);
    line += text;
    if (share > 0) line += "  " + HumanSeconds(seconds * (1 - share) / share) + " left";
  }
  if (p.bad_inputs > 0) line += "  " + HumanCount(p.bad_inputs) + " bad";
  return line;
}

void ProgressBar::Show(const PackProgress& progress) {
  if (!bar_ && !plain_) return;
  const auto now = Clock::now();
  if (progress.stage != stage_) {  // rates count from the stage's start
    stage_ = progress.stage;
    start_ = now;
    if (bar_) last_ = now - kRedraw;
  }
  const auto interval = bar_ ? std::chrono::duration_cast<Clock::duration>(kRedraw)
                             : std::chrono::duration_cast<Clock::duration>(kPlainInterval);
  if (now - last_ < interval) return;
  last_ = now;
  std::string line =
      Line(progress, std::chrono::duration<double>(now - start_).count(), bar_ && TerminalWidth() >= kRoomForBar);
  if (plain_) {
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  line.resize(std::min(line.size(), TerminalWidth() - 1));
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  drawn_ = true;
}

void ProgressBar::Clear() {
  if (drawn_) std::fprintf(stderr, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace shardpack::tools
