#include <algorithm>
#include <memory>

#include "libshard/pack/given_options.h"
#include "libshard/pack/key_set.h"
#include "libshard/pack/packing.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBytesAKey = 32;     // of a KeySet
constexpr std::uint32_t kFewShards = 4;      // each is asked for a key then
constexpr std::uint64_t kStretch = 1 << 16;  // keys between two looks at `stop`

// The keys of a dataset. They are read when the first one is asked for: a request that is done already asks for none.
class KeysOf {
 public:
  KeysOf(const fs::path& folder, const PackOptions& options) : folder_(folder), options_(options) {}

  bool Has(std::string_view key) {
    if (!dataset_) Open();
    return set_ ? set_->Has(key) : dataset_->Find(key).has_value();
  }

 private:
  void Open() {
    dataset_ = Dataset::Open(folder_);
    const bool fits = dataset_->size() <= options_.memory_bytes / 4 / kBytesAKey;
    if (dataset_->num_shards() <= kFewShards || !fits) return;
    set_ = std::make_unique<KeySet>();
    for (std::uint64_t i = 0; i < dataset_->size(); ++i) {
      if (i % kStretch == 0 && options_.stop != nullptr && *options_.stop) throw Interrupted{};
      set_->Insert(dataset_->Key(i));
    }
  }

  const fs::path& folder_;
  const PackOptions& options_;
  std::optional<Dataset> dataset_;
  std::unique_ptr<KeySet> set_;
};

}  // namespace

PackResult Append(const PackOptions& options, bool new_classes) {
  PackOptions wanted = options;
  if (wanted.output.filename() == kManifestName) wanted.output = wanted.output.parent_path();
  const Manifest manifest = Manifest::Load(wanted.output);
  if (manifest.format != "record") {
    throw Error(ErrorCode::kUnsupported,
                "inputs are appended to datasets of record shards; this one is " + Escaped(manifest.format));
  }
  TakeContentOptions(manifest.options, wanted);
  wanted.name = manifest.name;
  wanted.classes.reset();  // the dataset's, which the base says
  wanted.overwrite = false;
  KeysOf keys(wanted.output, wanted);
  PlanBase base;
  base.manifest = &manifest;
  base.new_classes = new_classes;
  base.has_key = [&](std::string_view key) { return keys.Has(key); };
  return Pack(wanted, &base);
}

}  // namespace shardpack
