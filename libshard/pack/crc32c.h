// CRC-32C (Castagnoli), which TFRecord files are checked by.
#pragma once

#include <cstdint>

#include "shardpack/record.h"

namespace shardpack {

std::uint32_t Crc32c(Bytes bytes);

// As it stands in TFRecord files: rotated and shifted, since a CRC of bytes that hold CRCs is weak.
std::uint32_t MaskedCrc32c(Bytes bytes);

// What Crc32c() does where the processor has no instruction for it.
std::uint32_t PortableCrc32c(Bytes bytes);

}  // namespace shardpack
