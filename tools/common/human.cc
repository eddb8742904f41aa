#include "tools/common/human.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "shardpack/error.h"

namespace shardpack::tools {

std::string HumanBytes(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1023.95 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, value < 99.95 ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
  return text;
}

std::string HumanCount(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string HumanSeconds(double seconds) {
  char text[48];
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (seconds < 9.95) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (whole < 60) {
    std::snprintf(text, sizeof text, "%lld s", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole % 3600 / 60);
  }
  return text;
}

std::string Counted(std::uint64_t count, const std::string& noun) {
  return HumanCount(count) + " " + noun + (count == 1 ? "" : noun.ends_with('s') ? "es" : "s");
}

std::uint64_t ParseBytes(const std::string& option, const std::string& text) {
  const auto refuse = [&] [[noreturn]] {
    throw Error(ErrorCode::kInvalidArgument,
                option + ": '" + Escaped(text) + "' is no size: write for example 256MiB, 1GB or a number of bytes");
  };
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !(value >= 0)) refuse();
  std::string unit(end, text.data() + text.size());
  while (unit.starts_with(' ')) unit.erase(0, 1);
  for (char& c : unit) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    static constexpr std::string_view kLetters = "kmgt";
    const auto power = kLetters.find(unit[0]);
    if (power == std::string_view::npos) refuse();
    const std::string_view rest = std::string_view(unit).substr(1);
    if (rest != "ib" && rest != "b" && rest != "i" && !rest.empty()) refuse();
    factor = std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  if (value * factor >= 9e18) refuse();
  if (value * factor < 1)
    throw Error(ErrorCode::kInvalidArgument, option + ": '" + Escaped(text) + "' is below a byte");
  return static_cast<std::uint64_t>(value * factor);
}

}  // namespace shardpack::tools
