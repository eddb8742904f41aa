// What the decoders of the shard's structures check alike.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "libshard/store/coding.h"
#include "libshard/store/record_format.h"

namespace shardpack {

inline bool StartsWith(Bytes bytes, std::string_view text) { return AsText(bytes).starts_with(text); }

// Appends the checksum of what stands before it. Precondition: `bytes` ends with its place.
inline void Seal(std::span<std::byte> bytes) {
  const std::size_t end = bytes.size() - kChecksumBytes;
  Store(&bytes[end], Xxh3_64(bytes.first(end)));
}
inline bool IsSealed(Bytes bytes) {
  const std::size_t end = bytes.size() - kChecksumBytes;
  return Load<std::uint64_t>(&bytes[end]) == Xxh3_64(bytes.first(end));
}

[[noreturn]] inline void Corrupt(const Location& where, const std::string& message) {
  throw Error(ErrorCode::kCorruption, where, message);
}

inline void CheckVersion(std::uint16_t version, const Location& where) {
  if (version == 0) Corrupt(where, "version 0 was never written");
  if (version > kFormatVersion) {
    throw Error(ErrorCode::kUnsupported, where,
                "format version " + std::to_string(version) + " is newer than this program, which reads up to " +
                    std::to_string(kFormatVersion));
  }
}

inline void CheckFlags(std::uint32_t flags, std::uint32_t known, const Location& where) {
  if ((flags & ~known & kRefuseUnknown) != 0) {
    throw Error(ErrorCode::kUnsupported, where,
                "flags " + std::to_string(flags) + " ask for what this program does not know");
  }
}

inline bool AllZero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace shardpack
