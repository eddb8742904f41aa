// UTF-8, one character at a time; hexadecimal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardpack {

struct Utf8Char {
  char32_t code_point = 0;
  std::size_t bytes = 1;  // 1 where not valid
  bool valid = false;
};

// The first character of `text`. Precondition: !text.empty().
Utf8Char DecodeUtf8(std::string_view text);

// Neither a control character nor one that would reorder or break a line.
bool IsPrintable(char32_t c);

std::string ToHex(std::string_view bytes);
std::optional<std::string> FromHex(std::string_view hex);  // lower-case digits only, an even number

}  // namespace shardpack
