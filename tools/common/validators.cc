#include "tools/common/validators.h"

#include <charconv>

#include "shardpack/error.h"

namespace shardpack::tools {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

}  // namespace

CLI::Validator WholeNumber(std::uint64_t least, std::uint64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return "";
    if (error == std::errc::result_out_of_range && most == kLargest) return "'" + Escaped(text) + "' is too large";
    const std::string range = most != kLargest ? " from " + std::to_string(least) + " to " + std::to_string(most)
                              : least > 0      ? " of " + std::to_string(least) + " or more"
                                               : "";
    return "'" + Escaped(text) + "' is no whole number" + range;
  };
  return CLI::Validator([check](std::string& text) { return check(text); }, "");
}

CLI::Validator OneOf(std::vector<std::string> words) {
  const auto check = [words = std::move(words)](const std::string& text) -> std::string {
    std::string list;
    for (const std::string& word : words) {
      if (word == text) return "";
      list += (list.empty() ? "" : ", ") + word;
    }
    return "'" + Escaped(text) + "' is none of " + list;
  };
  return CLI::Validator([check](std::string& text) { return check(text); }, "");
}

CLI::Validator NotEmpty() {
  return CLI::Validator([](std::string& text) { return text.empty() ? "the value is empty" : ""; }, "");
}

void AddDatasetOption(CLI::App& command, std::string& path) {
  command.add_option("DATASET", path, "A dataset's folder, or one shard")->required()->check(NotEmpty())->type_name("");
}

void AddProgressOption(CLI::App& command, std::string& progress) {
  command
      .add_option("--progress", progress,
                  "A bar on a terminal and lines elsewhere (auto), lines (plain), nothing (none)")
      ->capture_default_str()
      ->check(OneOf({"auto", "plain", "none"}))
      ->type_name("auto|plain|none");
}

}  // namespace shardpack::tools
