// A complete distributed training program in C++: see --help.
#include <c10/util/Logging.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "samples/train_ddp/failure.h"
#include "samples/train_ddp/options.h"
#include "samples/train_ddp/rendezvous.h"
#include "samples/train_ddp/train.h"

namespace {

// No destructors on the way out of a failure: a process group whose peer died may wait for it in its own.
[[noreturn]] void Fail(const std::string& who, const std::exception& error) {
  const std::string line = who + train_ddp::FirstLine(error.what()) + "\n";
  std::fflush(stdout);
  std::fputs(line.c_str(), stderr);  // one write, so that the lines of several ranks do not mix
  std::fflush(stderr);
  std::_Exit(1);
}

// LibTorch logs each lost peer with a stack of its own calls; our one line says what matters.
void QuietLibTorch() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = 3;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that died is an error, not a signal
  QuietLibTorch();
  std::string who = "train_ddp: ";
  try {
    int status = 0;
    const auto options = train_ddp::Parse(argc, argv, &status);
    if (!options) return status;
    const train_ddp::Rendezvous rendezvous = train_ddp::RendezvousFromEnvironment();
    if (rendezvous.world.size > 1) who += "rank " + std::to_string(rendezvous.world.rank) + ": ";
    train_ddp::Run(*options, rendezvous);
  } catch (const std::exception& error) {
    Fail(who, error);
  }
  return 0;
}
