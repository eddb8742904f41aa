#include "libshard/pack/batch_packer.h"

#include <fcntl.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

#include "libshard/pack/image_work.h"

namespace shardpack {
namespace {

constexpr int kZstdLevel = 3;
constexpr std::uint64_t kLargestInput = std::numeric_limits<std::uint32_t>::max();  // what a row of the index can say
// A record is compressed where this share of its bytes is saved at least: below it, inflating costs more than reading
// what it saves.
constexpr std::uint64_t kLeastGainPercent = 5;

// These hold pixels as they are or nearly so. JPEG, PNG, WebP and GIF are entropy-coded already (JPEG photographs: zstd
// saves 0.7 %).
bool MayCompress(Encoding encoding) {
  return encoding == Encoding::kBmp || encoding == Encoding::kPnm || encoding == Encoding::kTiff;
}

std::string SystemText(int error) { return std::generic_category().message(error); }

[[noreturn]] void ThrowBad(const std::string& reason, ErrorCode code = ErrorCode::kBadInput) {
  throw Error(code, reason);
}

// What the system refuses to every input, not to this one: it ends the run and is never counted against an input.
struct OutOfResources {
  int error;
  const char* doing;
};

[[noreturn]] void ThrowUnreadable(int error, const char* doing) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      throw OutOfResources{error, doing};
    case ENOENT:
      ThrowBad("the file vanished");
    case ELOOP:
      ThrowBad("the link leads to itself");
    default:
      ThrowBad(std::string("cannot ") + doing + ": " + SystemText(error), ErrorCode::kIo);
  }
}

[[noreturn]] void ThrowScanError(int error) {
  if (error == ENOENT) ThrowBad("dangling link: it leads to no file");
  ThrowUnreadable(error, "look at the file");
}

}  // namespace

struct BatchPacker::Impl {
  explicit Impl(BatchContext& shared)
      : context(shared), decoder(shared.limits), zstd(ZSTD_createCCtx(), ZSTD_freeCCtx) {
    if (!zstd) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_compressionLevel, kZstdLevel);
  }

  void PackOne(std::uint64_t index, std::size_t position, PackedBatch& out);
  Bytes Read(const Input& input, std::byte* to) const;
  ImageInfo Check(Bytes bytes);
  void Compress(Bytes bytes, PackedBatch::Record& record, PackedBatch& out);

  BatchContext& context;
  ImageDecoder decoder;
  Image picture;
  std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> zstd;
  std::string path;
};

// `to` has room for one byte more than the scan saw, so that one read both fetches the file and shows that it has not
// grown.
Bytes BatchPacker::Impl::Read(const Input& input, std::byte* to) const {
  const char* name = path.c_str();
  // O_NONBLOCK: a FIFO that took the file's place since must not be waited for.
  UniqueFd file(openat(context.inputs.roots[input.source].get(), name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) ThrowUnreadable(errno, "open");
  std::uint64_t done = 0;
  while (done <= input.size) {
    const ssize_t n = ::read(file.get(), to + done, std::min<std::uint64_t>(input.size + 1 - done, 1u << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowUnreadable(errno, "read");
    done += static_cast<std::uint64_t>(n);
    if (n == 0 || done == input.size) break;
  }
  if (done != input.size) ThrowBad("the file changed while it was being packed");
  return {to, static_cast<std::size_t>(done)};
}

ImageInfo BatchPacker::Impl::Check(Bytes bytes) {
  const ImageInfo info = ProbeImage(bytes, context.limits);
  if (context.verify == VerifyImages::kHeader) CheckHasEnd(info.encoding, bytes);
  if (context.verify == VerifyImages::kDecode) {
    std::unique_lock<std::mutex> alone(context.large_picture, std::defer_lock);
    const bool large = std::uint64_t{info.width} * info.height * 3 > context.large_picture_bytes;
    if (large) alone.lock();
    decoder.Decode(bytes, picture);
    if (large) picture = Image{};
  }
  return info;
}

void BatchPacker::Impl::Compress(Bytes bytes, PackedBatch::Record& record, PackedBatch& out) {
  const std::size_t at = out.compressed.size();
  out.compressed.resize(at + ZSTD_compressBound(bytes.size()));
  const std::size_t size =
      ZSTD_compress2(zstd.get(), out.compressed.data() + at, out.compressed.size() - at, bytes.data(), bytes.size());
  const bool gains = !ZSTD_isError(size) && size * 100 <= bytes.size() * (100 - kLeastGainPercent);
  out.compressed.resize(gains ? at + size : at);
  if (!gains) return;
  record.compressed = true;
  record.position = at;
  record.info.codec = Codec::kZstd;
  record.info.stored_bytes = static_cast<std::uint32_t>(size);
  record.info.stored_xxh3 = Xxh3_64(Bytes(out.compressed).subspan(at, size));
}

void BatchPacker::Impl::PackOne(std::uint64_t index, std::size_t position, PackedBatch& out) {
  const Input& input = context.inputs.list[index];
  if (input.error != 0) ThrowScanError(input.error);
  if (input.size == 0) ThrowBad("empty file");
  if (input.size > kLargestInput) ThrowBad("a file of 4 GiB or more");
  const Bytes bytes = Read(input, out.raw.data() + position);
  const ImageInfo image = Check(bytes);

  PackedBatch::Record record;
  record.input = index;
  record.position = position;
  RecordInfo& info = record.info;
  info.raw_bytes = info.stored_bytes = static_cast<std::uint32_t>(bytes.size());
  info.label = input.label;
  info.width = image.width;
  info.height = image.height;
  info.channels = image.channels;
  info.bit_depth = image.bit_depth;
  info.encoding = image.encoding;
  info.orientation = image.orientation;
  info.encoded_xxh3 = info.stored_xxh3 = Xxh3_64(bytes);
  if (MayCompress(info.encoding)) Compress(bytes, record, out);
  out.records.push_back(record);
}

BatchPacker::BatchPacker(BatchContext& context) : impl_(std::make_unique<Impl>(context)) {}
BatchPacker::~BatchPacker() = default;

void BatchPacker::Pack(const InputRange& range, PackedBatch& out) {
  const Inputs& inputs = impl_->context.inputs;
  out.records.clear();
  out.bad.clear();
  out.compressed.clear();
  std::size_t needed = 0, position = 0;
  for (std::uint64_t i = range.begin; i < range.end; ++i)
    needed += inputs.list[i].size <= kLargestInput ? inputs.list[i].size + 1 : 0;
  // Grown only: what a shorter batch leaves behind is never read.
  if (out.raw.size() < needed) out.raw.resize(needed);
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    if (impl_->context.stop != nullptr && impl_->context.stop->load(std::memory_order_relaxed)) throw Interrupted{};
    const Input& input = inputs.list[i];
    impl_->path.assign(input.key.substr(input.path_skip));
    try {
      impl_->PackOne(i, position, out);
      position += input.size + 1;
    } catch (const OutOfResources& lack) {
      ThrowSystemError(lack.error, lack.doing, (inputs.source_paths[input.source] / impl_->path).native());
    } catch (const Error& error) {
      BadInput bad;
      bad.key = std::string(input.key);
      bad.source = (inputs.source_paths[input.source] / impl_->path).native();
      bad.reason = error.reason();
      bad.offset = error.where().offset;
      bad.code = error.code();
      out.bad.push_back(std::move(bad));
    }
  }
}

}  // namespace shardpack
