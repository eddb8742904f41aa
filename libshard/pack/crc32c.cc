#include "libshard/pack/crc32c.h"

#include <array>

#include "libshard/store/coding.h"

namespace shardpack {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][i] = crc;
  }
  for (std::size_t t = 1; t < 8; ++t) {
    for (std::size_t i = 0; i < 256; ++i) tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 255];
  }
  return tables;
}
constexpr Tables kTables = MakeTables();

std::uint32_t ByBytes(std::uint32_t crc, Bytes bytes) {
  for (const std::byte b : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(b)) & 255];
  return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define SHARDPACK_HAS_CRC32 1
__attribute__((target("sse4.2"))) std::uint32_t ByInstruction(std::uint32_t crc, Bytes bytes) {
  std::uint64_t wide = crc;
  while (bytes.size() >= 8) {
    wide = __builtin_ia32_crc32di(wide, Load<std::uint64_t>(bytes.data()));
    bytes = bytes.subspan(8);
  }
  return ByBytes(static_cast<std::uint32_t>(wide), bytes);
}
#endif

}  // namespace

// Eight bytes a step, each through a table of its own.
std::uint32_t PortableCrc32c(Bytes bytes) {
  std::uint32_t crc = ~0u;
  while (bytes.size() >= 8) {
    const std::uint64_t word = Load<std::uint64_t>(bytes.data()) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][word >> (8 * i) & 255];
    bytes = bytes.subspan(8);
  }
  return ~ByBytes(crc, bytes);
}

std::uint32_t Crc32c(Bytes bytes) {
#ifdef SHARDPACK_HAS_CRC32
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~ByInstruction(~0u, bytes);
#endif
  return PortableCrc32c(bytes);
}

std::uint32_t MaskedCrc32c(Bytes bytes) {
  const std::uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace shardpack
