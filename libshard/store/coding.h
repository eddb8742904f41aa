// Little-endian numbers at any address, and alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace shardpack {

template <typename T>
T Load(const void* from) {
  static_assert(std::is_integral_v<T>);
  std::make_unsigned_t<T> value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) {
    std::make_unsigned_t<T> swapped = 0;
    for (std::size_t i = 0; i < sizeof value; ++i)
      swapped |= static_cast<decltype(value)>((value >> (8 * i) & 0xFF) << (8 * (sizeof value - 1 - i)));
    value = swapped;
  }
  return static_cast<T>(value);
}

template <typename T>
void Store(void* to, T number) {
  static_assert(std::is_integral_v<T>);
  auto value = static_cast<std::make_unsigned_t<T>>(number);
  if constexpr (std::endian::native == std::endian::big) value = Load<decltype(value)>(&value);
  std::memcpy(to, &value, sizeof value);
}

// The next multiple of `alignment`, a power of two. Precondition: it fits 64 bits.
constexpr std::uint64_t AlignUp(std::uint64_t n, std::uint64_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

}  // namespace shardpack
