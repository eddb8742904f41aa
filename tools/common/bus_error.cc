#include "tools/common/bus_error.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "tools/common/exit_status.h"

namespace shardpack::tools {
namespace {

// All that a handler calls must be safe in it: system calls and these few lines.
const char* program_name = "shardpack";

void Put(const char* text, std::size_t size) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, size);
}
void Put(const char* text) { Put(text, std::strlen(text)); }

std::uintptr_t ParseHex(const char*& at) {
  std::uintptr_t value = 0;
  for (;; ++at) {
    if (*at >= '0' && *at <= '9') {
      value = value * 16 + static_cast<unsigned>(*at - '0');
    } else if (*at >= 'a' && *at <= 'f') {
      value = value * 16 + static_cast<unsigned>(*at - 'a' + 10);
    } else {
      return value;
    }
  }
}

// The path in a line of /proc/self/maps, "begin-end rights offset device inode path", if `address` lies in it; else
// null. The system writes a line feed in a path as \012.
const char* PathIfInside(const char* line, std::uintptr_t address) {
  const char* at = line;
  const std::uintptr_t begin = ParseHex(at);
  if (*at++ != '-') return nullptr;
  const std::uintptr_t end = ParseHex(at);
  return begin <= address && address < end ? std::strchr(line, '/') : nullptr;
}

// A line may be longer than a read: they are put together byte by byte.
void PutMappedFile(std::uintptr_t address) {
  static char line[8192];
  static char block[4096];
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  std::size_t size = 0;
  for (ssize_t n = 0; maps >= 0 && (n = read(maps, block, sizeof block)) > 0;) {
    for (ssize_t i = 0; i < n; ++i) {
      if (block[i] != '\n') {
        if (size < sizeof line - 1) line[size++] = block[i];
        continue;
      }
      line[size] = '\0';
      size = 0;
      if (const char* path = PathIfInside(line, address)) return Put(path);
    }
  }
  Put("a mapped file");
}

void OnBusError(int, siginfo_t* info, void*) {
  static std::atomic_flag entered = ATOMIC_FLAG_INIT;
  if (entered.test_and_set()) {  // several threads at once: the first speaks
    for (;;) pause();
  }
  if (isatty(STDERR_FILENO) == 1) Put("\r\x1b[K");  // a progress bar
  Put(program_name);
  Put(": ");
  PutMappedFile(reinterpret_cast<std::uintptr_t>(info->si_addr));
  Put(": cut short while it was being read, or its disk cannot be read\n");
  _exit(kDamage);
}

}  // namespace

void CatchBusErrors(const char* program) {
  program_name = program;
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace shardpack::tools
