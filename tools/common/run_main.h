// What every program's main() has in common.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <string>

namespace shardpack::tools {

// Parses the command line (callbacks run the command and set `status`) and is the one place that catches: an error
// becomes one line on standard error, "shardpack: ...", and the exit status of its kind. Returns the status.
int RunMain(CLI::App& app, int argc, char** argv, int& status);

// Set by SIGINT and SIGTERM once CatchSignals() was called; a second signal ends the process at once.
const std::atomic<bool>& Stopped();
void CatchSignals();

// Thrown by a command that found its arguments wrong: status 2 and the message.
struct UsageError {
  std::string message;
};

// Writes `text` to standard output; throws Error with kIo where that fails (a full disk), OutputClosed where nobody
// reads on, as under `| head`: RunMain() then ends quietly with the status set so far.
struct OutputClosed {};
void WriteOut(std::string_view text);

}  // namespace shardpack::tools
