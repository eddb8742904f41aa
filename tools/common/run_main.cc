#include "tools/common/run_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <sstream>

#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "tools/common/bus_error.h"
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

std::string ReasonOf(const CLI::App& app, const CLI::ParseError& error) {
  const bool takes_command = !app.get_subcommands([](const CLI::App*) { return true; }).empty();
  if (!takes_command || !app.get_subcommands().empty()) return error.what();
  const auto unknown = app.remaining();
  if (unknown.empty()) return "name a command";
  return (unknown[0].starts_with('-') ? "there is no option '" : "there is no command '") + Escaped(unknown[0]) + "'";
}

// CLI11 knows --help and --version as exceptions that end well.
int OnParseError(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    std::ostringstream text;
    app.exit(error, text, text);
    WriteOut(text.str());
    return kDone;
  }
  const auto commands = app.get_subcommands();
  const std::string help = app.get_name() + (commands.empty() ? "" : " " + commands[0]->get_name()) + " --help";
  return Say(app, ReasonOf(app, error) + " (see " + help + ")", kUsage);
}

// A descriptor that the caller closed would be given to the first file that is opened, and a message written into it.
void OccupyStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The wrong way round, so that reading and writing still fail. The lowest free number is this one.
    [[maybe_unused]] const int opened = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

const std::atomic<bool>& Stopped() { return stopped; }

void CatchSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

namespace {

int Parse(CLI::App& app, int argc, char** argv, int& status) {
  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& error) {
    return OnParseError(app, error);
  }
}

}  // namespace

int RunMain(CLI::App& app, int argc, char** argv, int& status) {
  OccupyStandardStreams();
  static const std::string name = app.get_name();
  CatchBusErrors(name.c_str());
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves ends the writing, not a conversion
  try {
    return Parse(app, argc, argv, status);
  } catch (const OutputClosed&) {
    return status;
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
    if (n < 0 && errno == EPIPE) throw OutputClosed{};
    if (n < 0) ThrowSystemError(errno, "write to", "standard output");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace shardpack::tools
