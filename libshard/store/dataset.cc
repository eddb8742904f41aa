#include "shardpack/dataset.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <mutex>

#include "libshard/store/content_counts.h"
#include "shardpack/error.h"

namespace shardpack {

struct Dataset::Impl {
  // Opened by the first thread that needs it; afterwards one load finds it.
  struct Slot {
    std::atomic<const ShardReader*> ready{nullptr};
    std::unique_ptr<const ShardReader> owned;
    std::mutex mutex;
  };

  explicit Impl(Manifest dataset_manifest) : manifest(std::move(dataset_manifest)), slots(manifest.shards.size()) {
    starts.push_back(0);
    for (const ShardEntry& entry : manifest.shards) starts.push_back(starts.back() + entry.records);
  }

  const ShardReader& Shard(std::uint32_t s) const {
    assert(s < slots.size());
    if (const ShardReader* const ready = slots[s].ready.load(std::memory_order_acquire)) [[likely]]
      return *ready;
    return OpenShard(s);
  }
  const ShardReader& OpenShard(std::uint32_t s) const;
  void CheckFile(const ShardEntry& entry) const;
  ShardReader OpenChecked(const ShardEntry& entry) const;
  void Adopt(std::uint32_t s, ShardReader reader) const;

  Manifest manifest;
  std::filesystem::path folder;
  std::vector<std::uint64_t> starts;  // index of each shard's first record, and the number of all
  mutable std::vector<Slot> slots;
};

namespace {

[[noreturn]] void Corrupt(const std::filesystem::path& path, const std::string& message) {
  throw Error(ErrorCode::kCorruption, Location{path.string(), {}, {}}, message);
}

// A shard alone is a dataset of one shard; all but the file's digest, for which every byte would be read, stands in its
// index.
Manifest ManifestOf(const ShardReader& reader) {
  Manifest manifest;
  manifest.classes = reader.class_names();
  manifest.label_kind = manifest.classes.empty() ? LabelKind::kInteger : LabelKind::kClass;
  manifest.records = reader.num_records();
  manifest.bytes_out = reader.file_bytes();
  manifest.shards = {
      {reader.path().filename().string(), reader.num_records(), reader.file_bytes(), {}, reader.index_digest()}};
  ContentCounts counts;
  counts.Add(reader);
  counts.Finish(manifest);
  for (const auto& [name, codec] : manifest.codecs) manifest.bytes_in += codec.raw_bytes;
  return manifest;
}

}  // namespace

// Asked before the shard itself: this says best what happened to a file that was cut or replaced.
void Dataset::Impl::CheckFile(const ShardEntry& entry) const {
  const std::filesystem::path path = folder / entry.file;
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory) Corrupt(path, "missing: the manifest names this shard");
  if (error) return;  // what it is instead of a file, opening it says
  if (bytes != entry.bytes) {
    Corrupt(path, "corrupt: the file is " + std::to_string(bytes) + " bytes, the manifest says " +
                      std::to_string(entry.bytes) + ": truncated or replaced");
  }
}

ShardReader Dataset::Impl::OpenChecked(const ShardEntry& entry) const {
  CheckFile(entry);
  const std::filesystem::path path = folder / entry.file;
  ShardReader reader = ShardReader::Open(path);
  if (reader.num_records() != entry.records || reader.index_digest() != entry.index_digest) {
    Corrupt(path, "corrupt: not the shard the manifest describes: its index differs");
  }
  return reader;
}

// Precondition: the slot's mutex is held, or no other thread knows the dataset yet.
void Dataset::Impl::Adopt(std::uint32_t s, ShardReader reader) const {
  slots[s].owned = std::make_unique<const ShardReader>(std::move(reader));
  slots[s].ready.store(slots[s].owned.get(), std::memory_order_release);
}

const ShardReader& Dataset::Impl::OpenShard(std::uint32_t s) const {
  const std::lock_guard lock(slots[s].mutex);
  if (slots[s].owned == nullptr) Adopt(s, OpenChecked(manifest.shards[s]));
  return *slots[s].owned;
}

Dataset Dataset::Open(const std::filesystem::path& path) {
  std::error_code ignored;  // what is wrong with the path shows when it is opened
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  if (is_folder || path.filename() == kManifestName) {
    const std::filesystem::path folder = is_folder ? path : path.parent_path().empty() ? "." : path.parent_path();
    auto impl = std::make_shared<Impl>(Manifest::Load(folder));
    if (impl->manifest.format != "record") {
      throw Error(ErrorCode::kUnsupported, Location{path.string(), {}, {}},
                  "a dataset of format \"" + Escaped(impl->manifest.format) + "\", which this program does not read");
    }
    impl->folder = folder;
    return Dataset(std::move(impl));
  }
  ShardReader reader = ShardReader::Open(path);
  auto impl = std::make_shared<Impl>(ManifestOf(reader));
  impl->folder = path.parent_path().empty() ? "." : path.parent_path();
  impl->Adopt(0, std::move(reader));
  return Dataset(std::move(impl));
}

Dataset::Dataset(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}

std::uint64_t Dataset::size() const noexcept { return impl_->starts.back(); }
const Manifest& Dataset::manifest() const noexcept { return impl_->manifest; }
const std::filesystem::path& Dataset::folder() const noexcept { return impl_->folder; }
const Digest128& Dataset::digest() const noexcept { return impl_->manifest.dataset_digest; }

Dataset::Place Dataset::PlaceOf(std::uint64_t index) const {
  assert(index < size());
  // The last shard that begins at or before the index; empty shards before it begin there too.
  const auto after = std::upper_bound(impl_->starts.begin(), impl_->starts.end(), index);
  const auto shard = static_cast<std::uint32_t>(after - impl_->starts.begin() - 1);
  return {shard, index - impl_->starts[shard]};
}

std::uint64_t Dataset::IndexOf(Place place) const { return impl_->starts[place.shard] + place.record; }

RecordInfo Dataset::Info(std::uint64_t index) const {
  const Place place = PlaceOf(index);
  return shard(place.shard).Info(place.record);
}

std::string_view Dataset::Key(std::uint64_t index) const {
  const Place place = PlaceOf(index);
  return shard(place.shard).Key(place.record);
}

void Dataset::Read(std::uint64_t index, std::vector<std::byte>& out) const {
  const Place place = PlaceOf(index);
  shard(place.shard).Read(place.record, out);
}

std::optional<std::uint64_t> Dataset::Find(std::string_view key) const {
  for (std::uint32_t s = 0; s < num_shards(); ++s) {
    if (const auto record = shard(s).Find(key)) return IndexOf({s, *record});
  }
  return std::nullopt;
}

std::uint64_t Dataset::NumClassmates(std::int64_t label) const {
  std::uint64_t count = 0;
  for (std::uint32_t s = 0; s < num_shards(); ++s) count += shard(s).NumClassmates(label);
  return count;
}

std::uint64_t Dataset::Classmate(std::int64_t label, std::uint64_t k) const {
  for (std::uint32_t s = 0; s < num_shards(); ++s) {
    const std::uint64_t count = shard(s).NumClassmates(label);
    if (k < count) return IndexOf({s, shard(s).Classmate(label, k)});
    k -= count;
  }
  throw Error(ErrorCode::kInvalidArgument, Location{impl_->folder.string(), {}, {}},
              "label " + std::to_string(label) + " has no such record");
}

std::uint32_t Dataset::num_shards() const noexcept { return static_cast<std::uint32_t>(impl_->slots.size()); }
const ShardReader& Dataset::shard(std::uint32_t s) const { return impl_->Shard(s); }

void Dataset::CheckShards() const {
  for (const ShardEntry& entry : impl_->manifest.shards) impl_->CheckFile(entry);
}

}  // namespace shardpack
