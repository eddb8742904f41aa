// Words for what went wrong.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace train_ddp {

// LibTorch's messages carry places in its sources and C++ stacks; what a user can act on is the first line.
inline std::string FirstLine(std::string_view message) {
  message = message.substr(0, message.find('\n'));
  if (message.starts_with('[')) {  // "[/build/gloo/transport/tcp/pair.cc:547] Connection closed by peer"
    const std::size_t end = message.find("] ");
    if (end != std::string_view::npos) message.remove_prefix(end + 2);
  }
  return std::string(message.substr(0, message.find("Exception raised from")));
}

inline std::string Hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace train_ddp
