#include "shardpack/error.h"

#include <cerrno>
#include <system_error>

#include "libshard/store/text.h"

namespace shardpack {
namespace {

std::string Prefix(const Location& where) {
  std::string text = Escaped(where.path);
  if (where.record || where.offset) {
    if (!text.empty()) text += ": ";
    if (where.record) text += "record " + std::to_string(*where.record);
    if (where.record && where.offset) text += ' ';
    if (where.offset) text += "at byte " + std::to_string(*where.offset);
  }
  if (!text.empty()) text += ": ";
  return text;
}

}  // namespace

Error::Error(ErrorCode code, const std::string& message) : Error(code, Location{}, message) {}

Error::Error(ErrorCode code, Location where, const std::string& message)
    : std::runtime_error(Prefix(where) + message), code_(code), where_(std::move(where)), reason_(message) {}

Error::Error(ErrorCode code, Location where, std::string reason, const std::string& what)
    : std::runtime_error(what), code_(code), where_(std::move(where)), reason_(std::move(reason)) {}

void ThrowSystemError(int error_number, std::string_view doing, const std::string& path) {
  const std::string words = std::generic_category().message(error_number);
  std::string verb = "cannot ";
  verb += doing;
  throw Error(error_number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, Location{path, {}, {}},
              verb + ": " + words, verb + ' ' + Escaped(path) + ": " + words);
}

std::string Escaped(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Char c = DecodeUtf8(bytes);
    const std::string_view raw = bytes.substr(0, c.bytes);
    bytes.remove_prefix(c.bytes);
    if (c.valid && IsPrintable(c.code_point)) {
      if (c.code_point == '\\') out += '\\';
      out += raw;
    } else if (c.code_point == '\n' || c.code_point == '\t') {
      out += c.code_point == '\n' ? "\\n" : "\\t";
    } else {
      for (const char byte : raw) {
        const auto value = static_cast<unsigned char>(byte);
        out += {'\\', 'x', kHex[value >> 4], kHex[value & 15]};
      }
    }
  }
  return out;
}

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Char c = DecodeUtf8(bytes);
    if (!c.valid) return false;
    bytes.remove_prefix(c.bytes);
  }
  return true;
}

}  // namespace shardpack
