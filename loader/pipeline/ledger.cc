#include "loader/pipeline/ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>

#include "shardpack/error.h"
#include "shardpack/record.h"

namespace shardpack::loader {
namespace {

// UTF-8 or not, decided by the JSON library's own check.
bool IsUtf8(const std::string& bytes) {
  try {
    (void)nlohmann::json(bytes).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

std::string Hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char c : bytes) {
    hex += kDigits[c >> 4];
    hex += kDigits[c & 15];
  }
  return hex;
}

}  // namespace

std::string BadRecord::ToJson() const {
  nlohmann::ordered_json line;
  line["step"] = step;
  line["index"] = index;
  line["delivered"] = delivered;
  line["shard"] = Escaped(shard);
  line["record"] = record;
  line["offset"] = offset;
  if (IsUtf8(key)) {
    line["key"] = key;
  } else {
    line["key_hex"] = Hex(key);
  }
  line["reason"] = IsUtf8(reason) ? reason : Escaped(reason);
  return line.dump();
}

Ledger::~Ledger() {
  if (fd_ >= 0) ::close(fd_);
}

void Ledger::Append(const BadRecord& bad) {
  if (path_.empty()) return;
  if (fd_ < 0) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd_ < 0) ThrowSystemError(errno, "open", path_.string());
  }
  const std::string line = bad.ToJson() + '\n';
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(fd_, line.data() + done, line.size() - done);
    if (written < 0 && errno != EINTR) ThrowSystemError(errno, "write", path_.string());
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

}  // namespace shardpack::loader
