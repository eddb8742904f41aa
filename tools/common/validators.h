// Checks of option values, with messages for people.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace shardpack::tools {

// A whole number of `least` to `most` in decimal digits. CLI11 alone wraps "-1" round to the largest number and cuts
// one that is too large.
CLI::Validator WholeNumber(std::uint64_t least, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

// One of the words. In --help the option's type name lists them.
CLI::Validator OneOf(std::vector<std::string> words);

// Refuses "", which is what a variable that is not set leaves on a command line.
CLI::Validator NotEmpty();

// The positional DATASET that all reading commands begin with.
void AddDatasetOption(CLI::App& command, std::string& path);

// --progress auto|plain|none of the commands that show a bar (progress_bar.h).
void AddProgressOption(CLI::App& command, std::string& progress);

}  // namespace shardpack::tools
