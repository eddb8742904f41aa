// The one exception type of shardpack.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace shardpack {

enum class ErrorCode {
  kNotFound,         // a named file or dataset does not exist
  kIo,               // the operating system refused a read, write or map
  kCorruption,       // bytes on disk contradict the format
  kUnsupported,      // valid, but newer or optional and not built in
  kInvalidArgument,  // the caller's options cannot be honoured
  kBadInput,         // a source file that was to be packed is bad
};

// Where something went wrong, as far as known. `path` is kept byte for byte; what() shows it escaped.
struct Location {
  std::string path;
  std::optional<std::uint64_t> record;  // within the shard
  std::optional<std::uint64_t> offset;  // bytes from the start of the file
};

// Throws kIo (kNotFound for ENOENT) with the system's words for `error_number`: "cannot open PATH: No such file or directory".
// `doing` is a verb phrase: "open", "read", "sync".
[[noreturn]] void ThrowSystemError(int error_number, std::string_view doing, const std::string& path);

// Carries code() and where().
// what(): "shard-00012-5f3a9c01.shard: record 4711 at byte 80331776: checksum mismatch"
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);
  Error(ErrorCode code, Location where, const std::string& message);

  ErrorCode code() const noexcept { return code_; }
  const Location& where() const noexcept { return where_; }
  // The message without the location in front.
  const std::string& reason() const noexcept { return reason_; }

 private:
  friend void ThrowSystemError(int error_number, std::string_view doing, const std::string& path);
  Error(ErrorCode code, Location where, std::string reason, const std::string& what);

  ErrorCode code_;
  Location where_;
  std::string reason_;
};

// `bytes` with everything that is not printable UTF-8 as \xNN, and backslash, newline, tab escaped: safe in a message.
std::string Escaped(std::string_view bytes);

// Whether `bytes` is well-formed UTF-8 (no overlong forms, no surrogates).
bool IsUtf8(std::string_view bytes);

}  // namespace shardpack
