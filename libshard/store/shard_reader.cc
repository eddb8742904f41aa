#include "shardpack/shard_reader.h"

#include <cassert>

#include "libshard/store/coding.h"
#include "libshard/store/reader_impl.h"
#include "libshard/store/record_block.h"

namespace shardpack {

// ---- Reading

std::string_view ShardReader::Impl::Key(std::uint64_t i) const {
  const Row row = RowAt(i);
  return AsText(keys.Range(row.key_offset, row.key_bytes, i, rows.OffsetOf(i)));
}

Bytes ShardReader::Impl::HeapEntry(std::uint64_t i, const BlockedSection& positions, const BlockedSection& heap) const {
  if (positions.size() == 0) return {};
  const std::uint64_t position = Load<std::uint64_t>(positions.At(i));
  if (position == 0) return {};
  const Bytes length = heap.Range(position - 1, 4, i, positions.OffsetOf(i));
  return heap.Range(position + 3, Load<std::uint32_t>(length.data()), i, positions.OffsetOf(i));
}

// What is hashed is a copy, so that no later change of the mapping can pass.
Bytes ShardReader::Impl::CheckedCopy(std::uint64_t i, const RecordInfo& info) const {
  thread_local std::vector<std::byte> stored;
  const std::byte* const payload = file.bytes().data() + info.offset;
  stored.assign(payload, payload + info.stored_bytes);
  if (Xxh3_64(stored) != info.stored_xxh3) [[unlikely]]
    throw Error(ErrorCode::kCorruption, At(i, info.offset), "corrupt: checksum mismatch in the payload");
  return stored;
}

// A stored record is copied once, into the caller's buffer: assign() neither clears what it will overwrite nor gives
// memory back.
void ShardReader::Impl::Read(std::uint64_t i, std::vector<std::byte>& out) const {
  const RecordInfo info = RowAt(i).info;
  switch (info.codec) {
    case Codec::kStored: {
      const std::byte* const payload = file.bytes().data() + info.offset;
      out.assign(payload, payload + info.stored_bytes);
      if (Xxh3_64(out) != info.stored_xxh3) [[unlikely]]
        throw Error(ErrorCode::kCorruption, At(i, info.offset), "corrupt: checksum mismatch in the payload");
      return;
    }
    case Codec::kZstdBlock:
      return ReadFromBlock(i, info, out);
    case Codec::kZstd:
    case Codec::kZstdDictionary:
      return Inflate(i, info, CheckedCopy(i, info), out);
  }
}

// Neighbours are read one after the other more often than not: the last block of each thread is kept.
Bytes ShardReader::Impl::BlockContent(std::uint64_t i, const RecordInfo& info) const {
  struct LastBlock {
    std::uint64_t reader = 0, offset = 0, stored_xxh3 = 0;
    std::uint32_t stored_bytes = 0;
    std::vector<std::byte> content;
  };
  thread_local LastBlock last;
  const bool same = last.reader == id && last.offset == info.offset && last.stored_xxh3 == info.stored_xxh3 &&
                    last.stored_bytes == info.stored_bytes;
  if (same) return last.content;
  last.reader = 0;
  if (!InflateBlock(CheckedCopy(i, info), last.content))
    throw Error(ErrorCode::kCorruption, At(i, info.offset), "corrupt: the block does not decompress");
  last.reader = id;
  last.offset = info.offset;
  last.stored_xxh3 = info.stored_xxh3;
  last.stored_bytes = info.stored_bytes;
  return last.content;
}

void ShardReader::Impl::ReadFromBlock(std::uint64_t i, const RecordInfo& info, std::vector<std::byte>& out) const {
  const std::uint64_t position = Load<std::uint64_t>(block_positions.At(i));
  const Bytes content = BlockContent(i, info);
  if (position > content.size() || info.raw_bytes > content.size() - position)
    throw Error(ErrorCode::kCorruption, At(i, block_positions.OffsetOf(i)), "corrupt: the record leaves its block");
  const Bytes record = content.subspan(position, info.raw_bytes);
  out.assign(record.begin(), record.end());
  if (Xxh3_64(out) != info.encoded_xxh3)
    throw Error(ErrorCode::kCorruption, At(i, info.offset), "corrupt: checksum mismatch after decompression");
}

void ShardReader::Impl::Inflate(std::uint64_t i, const RecordInfo& info, Bytes stored,
                                std::vector<std::byte>& out) const {
  const DecompressionDictionary* const words = info.codec == Codec::kZstdDictionary ? Dictionary() : nullptr;
  if (!Decompress(stored, info.raw_bytes, words, out)) {
    throw Error(ErrorCode::kCorruption, At(i, info.offset), "corrupt: the payload does not decompress");
  }
  if (Xxh3_64(out) != info.encoded_xxh3)
    throw Error(ErrorCode::kCorruption, At(i, info.offset), "corrupt: checksum mismatch after decompression");
}

const DecompressionDictionary* ShardReader::Impl::Dictionary() const {
  if (const auto* ready = ready_dictionary.load(std::memory_order_acquire)) return ready;
  const std::lock_guard lock(mutex);
  if (owned_dictionary == nullptr) {
    const Bytes bytes = dictionary.Range(0, dictionary.bytes(), {}, dictionary.entry().offset);
    owned_dictionary = std::make_unique<const DecompressionDictionary>(bytes);
    ready_dictionary.store(owned_dictionary.get(), std::memory_order_release);
  }
  return owned_dictionary.get();
}

namespace {

std::vector<std::string> DecodeClassNames(Bytes bytes, const Location& where) {
  const auto take = [&](std::size_t size) {
    if (size > bytes.size()) throw Error(ErrorCode::kCorruption, where, "corrupt: class names leave their section");
    const Bytes taken = bytes.first(size);
    bytes = bytes.subspan(size);
    return taken;
  };
  std::vector<std::string> names;
  if (bytes.empty()) return names;
  for (std::uint32_t left = Load<std::uint32_t>(take(4).data()); left > 0; --left) {
    names.emplace_back(AsText(take(Load<std::uint32_t>(take(4).data()))));
  }
  if (!bytes.empty()) throw Error(ErrorCode::kCorruption, where, "corrupt: bytes after the last class name");
  return names;
}

}  // namespace

const std::vector<std::string>& ShardReader::Impl::ClassNames() const {
  if (const auto* ready = ready_class_names.load(std::memory_order_acquire)) return *ready;
  const std::lock_guard lock(mutex);
  if (owned_class_names == nullptr) {
    const Location where{path_text, {}, class_names.entry().offset};
    owned_class_names = std::make_unique<const std::vector<std::string>>(
        DecodeClassNames(class_names.Range(0, class_names.bytes(), {}, *where.offset), where));
    ready_class_names.store(owned_class_names.get(), std::memory_order_release);
  }
  return *owned_class_names;
}

// ---- Searching

// Hashes are spread evenly: the guess is the right block or the one beside it, so that few blocks are touched.
std::uint64_t ShardReader::Impl::LowerBound(std::uint64_t hash) const {
  const auto hash_at = [&](std::uint64_t i) { return Load<std::uint64_t>(lookup.At(i)); };
  const std::uint64_t n = lookup.size();
  if (n == 0) return 0;
  constexpr std::uint64_t kBlock = std::uint64_t{1} << kArrayBlockShift;
  const auto guess = static_cast<std::uint64_t>(static_cast<unsigned __int128>(hash) * n >> 64);
  std::uint64_t begin = guess / kBlock * kBlock;
  while (begin > 0 && hash_at(begin) >= hash) begin -= kBlock;
  while (n - begin > kBlock && hash_at(begin + kBlock - 1) < hash) begin += kBlock;
  std::uint64_t low = begin, high = n - begin > kBlock ? begin + kBlock : n;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (hash_at(middle) < hash) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::optional<std::uint64_t> ShardReader::Impl::Find(std::string_view key) const {
  const std::uint64_t hash = Xxh3_64(AsBytes(key));
  for (std::uint64_t i = LowerBound(hash); i < lookup.size(); ++i) {
    const std::byte* const entry = lookup.At(i);
    if (Load<std::uint64_t>(entry) != hash) break;
    const std::uint32_t record = Load<std::uint32_t>(entry + 8);
    if (Key(record) == key) return record;
  }
  return std::nullopt;
}

ShardReader::Impl::LabelRange ShardReader::Impl::Label(std::int64_t label) const {
  std::uint64_t low = 0, high = labels.size();
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const std::byte* const entry = labels.At(middle);
    const std::int64_t found = Load<std::int64_t>(entry);
    if (found == label) return {Load<std::uint64_t>(entry + 8), Load<std::uint64_t>(entry + 16)};
    if (found < label) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {};
}

// ---- The public face

ShardReader ShardReader::Open(const std::filesystem::path& path) { return ShardReader(std::make_unique<Impl>(path)); }

ShardReader::ShardReader(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ShardReader::ShardReader(ShardReader&&) noexcept = default;
ShardReader& ShardReader::operator=(ShardReader&&) noexcept = default;
ShardReader::~ShardReader() = default;

const std::filesystem::path& ShardReader::path() const noexcept { return impl_->path; }
std::uint64_t ShardReader::num_records() const noexcept { return impl_->footer.num_records; }
std::uint64_t ShardReader::file_bytes() const noexcept { return impl_->file.bytes().size(); }
std::uint16_t ShardReader::format_version() const noexcept { return impl_->header.version; }
std::uint64_t ShardReader::sync_marker() const noexcept { return impl_->header.sync_marker; }
Digest128 ShardReader::index_digest() const noexcept { return impl_->index_digest; }

RecordInfo ShardReader::Info(std::uint64_t i) const { return impl_->RowAt(i).info; }
std::string_view ShardReader::Key(std::uint64_t i) const { return impl_->Key(i); }
Bytes ShardReader::Metadata(std::uint64_t i) const {
  return impl_->HeapEntry(i, impl_->metadata_positions, impl_->metadata);
}
Bytes ShardReader::SideData(std::uint64_t i) const {
  return impl_->HeapEntry(i, impl_->side_data_positions, impl_->side_data);
}
void ShardReader::Read(std::uint64_t i, std::vector<std::byte>& out) const { impl_->Read(i, out); }

void ShardReader::WillNeed(std::uint64_t i) const noexcept {
  try {
    const RecordInfo info = impl_->RowAt(i).info;
    impl_->file.WillNeed(info.offset, info.stored_bytes);
  } catch (const Error&) {  // the read itself will say it
  }
}

std::optional<std::uint64_t> ShardReader::Find(std::string_view key) const { return impl_->Find(key); }
const std::vector<std::string>& ShardReader::class_names() const { return impl_->ClassNames(); }
std::uint64_t ShardReader::NumClassmates(std::int64_t label) const { return impl_->Label(label).count; }

std::uint64_t ShardReader::Classmate(std::int64_t label, std::uint64_t k) const {
  const Impl::LabelRange range = impl_->Label(label);
  assert(k < range.count);
  return Load<std::uint32_t>(impl_->classmates.At(range.first + k));
}

std::vector<ShardReader::Section> ShardReader::sections() const {
  std::vector<Section> sections;
  for (const SectionEntry& entry : impl_->section_entries) {
    sections.push_back({SectionName(entry), entry.id, entry.offset, entry.bytes, entry.block_bytes, entry.num_blocks});
  }
  return sections;
}

}  // namespace shardpack
