#include "libshard/store/compression.h"

#define ZSTD_STATIC_LINKING_ONLY  // ZSTD_c_literalCompressionMode
#include <zstd.h>

#include <algorithm>
#include <new>
#include <string>

#include "shardpack/error.h"

namespace shardpack {
namespace {

// Frames with literals as they are may be larger by one part in so many. Handwritten digits: 8 % more bytes on average,
// inflated in 0.51 us instead of 0.76.
constexpr std::size_t kLiteralsGain = 6;

struct FreeCCtx {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDCtx {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using UniqueDCtx = std::unique_ptr<ZSTD_DCtx, FreeDCtx>;

// True where the first block of a frame without dictionary id codes its literals (RFC 8878, 3.1.1).
bool CodesLiterals(Bytes frame) {
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(frame[at]); };
  constexpr std::size_t kDescriptorAt = 4;
  if (frame.size() <= kDescriptorAt) return false;
  const bool single_segment = (byte(kDescriptorAt) & 0x20) != 0;
  const std::size_t content_size[] = {single_segment ? 1u : 0u, 2, 4, 8};
  const std::size_t block = kDescriptorAt + 1 + (single_segment ? 0 : 1) + content_size[byte(kDescriptorAt) >> 6];
  constexpr std::size_t kBlockHeaderBytes = 3;
  if (frame.size() <= block + kBlockHeaderBytes) return false;
  const bool compressed = (byte(block) >> 1 & 3) == 2;
  return compressed && (byte(block + kBlockHeaderBytes) & 3) >= 2;
}

void Check(std::size_t result) {
  if (ZSTD_isError(result)) throw Error(ErrorCode::kInvalidArgument, std::string("zstd: ") + ZSTD_getErrorName(result));
}

// Making a context costs more than decompressing a small record.
ZSTD_DCtx* ThreadContext() {
  thread_local const UniqueDCtx context(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  return context.get();
}

}  // namespace

struct Compressor::Impl {
  using UniqueCCtx = std::unique_ptr<ZSTD_CCtx, FreeCCtx>;
  // Only ever grow: what a large record leaves behind is never read.
  struct Output {
    UniqueCCtx context;
    std::vector<std::byte> buffer;
  };
  Output usual;
  // Of tiny records, which is what dictionaries are for, decoding literals is half of the time. Frames of this one have
  // them as they are.
  Output plain_literals;

  static Output Make(int level, Bytes dictionary);
  static Bytes Compress(Output& output, Bytes raw);
};

Compressor::Impl::Output Compressor::Impl::Make(int level, Bytes dictionary) {
  Output output{UniqueCCtx(ZSTD_createCCtx()), {}};
  if (!output.context) throw std::bad_alloc();
  ZSTD_CCtx* const context = output.context.get();
  Check(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level));
  Check(ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1));
  Check(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0));
  Check(ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 0));
  if (!dictionary.empty()) Check(ZSTD_CCtx_loadDictionary(context, dictionary.data(), dictionary.size()));
  return output;
}

Bytes Compressor::Impl::Compress(Output& output, Bytes raw) {
  std::vector<std::byte>& buffer = output.buffer;
  buffer.resize(std::max(buffer.size(), ZSTD_compressBound(raw.size())));
  const std::size_t size = ZSTD_compress2(output.context.get(), buffer.data(), buffer.size(), raw.data(), raw.size());
  Check(size);
  return Bytes(buffer).first(size);
}

Compressor::Compressor(int level, Bytes dictionary) : impl_(std::make_unique<Impl>()) {
  impl_->usual = Impl::Make(level, dictionary);
  if (dictionary.empty()) return;
  impl_->plain_literals = Impl::Make(level, dictionary);
  Check(ZSTD_CCtx_setParameter(impl_->plain_literals.context.get(), ZSTD_c_literalCompressionMode,
                               ZSTD_lcm_uncompressed));
}
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;
Compressor::~Compressor() = default;

Bytes Compressor::Compress(Bytes raw) {
  const Bytes usual = Impl::Compress(impl_->usual, raw);
  // JPEGs have literals that cannot be coded: there is nothing to gain, and each attempt costs a microsecond or two.
  if (!impl_->plain_literals.context || !CodesLiterals(usual)) return usual;
  const Bytes plain = Impl::Compress(impl_->plain_literals, raw);
  return plain.size() * kLiteralsGain <= usual.size() * (kLiteralsGain + 1) ? plain : usual;
}

void Compressor::Compress(Bytes raw, std::vector<std::byte>& out) {
  const Bytes frame = Compress(raw);
  out.assign(frame.begin(), frame.end());
}

DecompressionDictionary::DecompressionDictionary(Bytes dictionary)
    : dictionary_(ZSTD_createDDict(dictionary.data(), dictionary.size())) {
  if (dictionary_ == nullptr) throw Error(ErrorCode::kCorruption, "the zstd dictionary is not one");
}
DecompressionDictionary::~DecompressionDictionary() { ZSTD_freeDDict(static_cast<ZSTD_DDict*>(dictionary_)); }

std::uint64_t MaxRawBytes(std::uint64_t stored_bytes) noexcept {
  // A block of at most 128 KiB costs at least three bytes of header and one of content.
  return (stored_bytes / 4 + 1) * ZSTD_BLOCKSIZE_MAX;
}

std::optional<std::uint64_t> FrameContentBytes(Bytes stored) noexcept {
  const unsigned long long size = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > MaxRawBytes(stored.size()))
    return std::nullopt;
  return size;
}

bool Decompress(Bytes stored, std::size_t raw_bytes, const DecompressionDictionary* dictionary,
                std::vector<std::byte>& out) {
  if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != raw_bytes) return false;
  out.resize(raw_bytes);
  ZSTD_DCtx* const context = ThreadContext();
  const std::size_t size =
      dictionary != nullptr ? ZSTD_decompress_usingDDict(context, out.data(), raw_bytes, stored.data(), stored.size(),
                                                         static_cast<const ZSTD_DDict*>(dictionary->get()))
                            : ZSTD_decompressDCtx(context, out.data(), raw_bytes, stored.data(), stored.size());
  return size == raw_bytes;
}

}  // namespace shardpack
