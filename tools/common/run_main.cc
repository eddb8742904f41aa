#include "tools/common/run_main.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>

#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "tools/common/exit_status.h"

namespace shardpack::tools {
namespace {

std::atomic<bool> stopped{false};

void OnSignal(int number) {
  stopped = true;
  std::signal(number, SIG_DFL);
}

int StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return kUsage;
    case ErrorCode::kNotFound:
      return kUsage;  // the command named something that is not there
    case ErrorCode::kIo:
      return kRefused;
    case ErrorCode::kCorruption:
    case ErrorCode::kUnsupported:
    case ErrorCode::kBadInput:
      return kDamage;
  }
  return kDamage;
}

int Say(const CLI::App& app, const std::string& message, int status) {
  std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), message.c_str());
  return status;
}

// CLI11 knows --help and --version as exceptions that end well.
int OnParseError(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    app.exit(error);
    return kDone;
  }
  return Say(app, std::string(error.what()) + "\nRun with --help for more information.", kUsage);
}

}  // namespace

const std::atomic<bool>& Stopped() { return stopped; }

void CatchSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int RunMain(CLI::App& app, int argc, char** argv, int& status) {
  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& error) {
    return OnParseError(app, error);
  } catch (const UsageError& error) {
    return Say(app, error.message, kUsage);
  } catch (const Interrupted&) {
    return Say(app, "interrupted", kInterrupted);
  } catch (const Error& error) {
    return Say(app, error.what(), StatusOf(error.code()));
  } catch (const std::bad_alloc&) {
    return Say(app, "not enough memory", kRefused);
  } catch (const std::exception& error) {
    return Say(app, error.what(), kRefused);
  }
}

void WriteOut(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) std::_Exit(kDone);  // `| head` has seen enough
    if (n < 0) ThrowSystemError(errno, "write to", "standard output");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace shardpack::tools
