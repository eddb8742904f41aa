// Another shardpack dataset.
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libshard/pack/json_object.h"
#include "libshard/pack/source.h"
#include "libshard/pack/task_arena.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kScanGrain = 1024;  // records a task looks at; far above what handing them over costs

class DatasetSource : public Source {
 public:
  explicit DatasetSource(const std::filesystem::path& path) : path_(path), dataset_(Dataset::Open(path)) {}

  SourceKind kind() const override { return SourceKind::kDataset; }
  bool IsStream() const override { return false; }
  void Scan(const std::atomic<bool>* stop, InputSink& sink) override;
  void Read(const PlannedInput& input, std::byte* to) override;
  bool IsAsPlanned(const PlannedInput& input) override;
  std::string Describe(const PlannedInput& input) const override {
    return path_.native() + ": " + std::string(input.SourceKey());
  }

 private:
  void Add(std::uint64_t index, InputSink& sink) const;
  std::string TakeLabel(const Dataset::Place& place, std::string_view metadata,
                        std::span<std::optional<std::string>> label) const;
  [[noreturn]] void Fail(const Dataset::Place& place, const std::string& reason) const {
    throw Error(ErrorCode::kCorruption, Location{dataset_.shard(place.shard).path().native(), place.record, {}},
                reason);
  }

  const std::filesystem::path path_;
  const Dataset dataset_;
};

// Its text as it is, whatever kind of number it looks like: a fractional label may well be whole.
std::string DatasetSource::TakeLabel(const Dataset::Place& place, std::string_view metadata,
                                     std::span<std::optional<std::string>> label) const {
  constexpr std::string_view kName[] = {"label"};
  std::string rest;
  try {
    rest = TakeMembers(metadata, kName, label);
  } catch (const Error& e) {
    Fail(place, "corrupt: its metadata " + e.reason());
  }
  const bool is_list = dataset_.manifest().label_kind == LabelKind::kList;
  const bool is_there = label[0] && (is_list ? label[0]->starts_with('[')
                                             : label[0]->find_first_not_of("0123456789+-.eE") == std::string::npos);
  if (!is_there) Fail(place, "corrupt: its metadata has no label of the dataset's kind");
  return rest;
}

void DatasetSource::Add(std::uint64_t index, InputSink& sink) const {
  const Dataset::Place place = dataset_.PlaceOf(index);
  const ShardReader& shard = dataset_.shard(place.shard);
  const RecordInfo info = shard.Info(place.record);
  const Manifest& manifest = dataset_.manifest();
  FoundInput found;
  found.key = shard.Key(place.record);
  found.size = info.raw_bytes;
  found.sequence = index;
  found.metadata = AsText(shard.Metadata(place.record));
  found.label.kind = manifest.label_kind;
  std::string rest;
  std::optional<std::string> label[1];
  switch (manifest.label_kind) {
    case LabelKind::kClass:
      if (info.label < 0 || static_cast<std::uint64_t>(info.label) >= manifest.classes.size()) {
        Fail(place, "corrupt: its label " + std::to_string(info.label) + " is none of the dataset's classes");
      }
      found.label.text = manifest.classes[static_cast<std::size_t>(info.label)];
      break;
    case LabelKind::kInteger:
      found.label.number = info.label;
      break;
    case LabelKind::kList:
    case LabelKind::kFloat:
      rest = TakeLabel(place, found.metadata, label);
      found.label.text = *label[0];
      found.metadata = rest == "{}" ? std::string_view() : rest;
      break;
  }
  sink.Add(found);
}

void DatasetSource::Scan(const std::atomic<bool>* stop, InputSink& sink) {
  dataset_.CheckShards();
  if (dataset_.manifest().label_kind == LabelKind::kClass) sink.AddClasses(dataset_.manifest().classes, true);
  ParallelFor(0, dataset_.size(), kScanGrain, [&](std::uint64_t index) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw Interrupted{};
    Add(index, sink);
  });
}

void DatasetSource::Read(const PlannedInput& input, std::byte* to) {
  thread_local std::vector<std::byte> bytes;
  if (input.sequence >= dataset_.size()) throw Error(ErrorCode::kBadInput, "the dataset does not have it any more");
  try {
    dataset_.Read(input.sequence, bytes);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kIo) throw;
    throw Error(ErrorCode::kBadInput, Location{{}, {}, e.where().offset}, e.what());
  }
  if (bytes.size() != input.size) throw Error(ErrorCode::kBadInput, "the dataset changed since it was planned");
  std::memcpy(to, bytes.data(), bytes.size());
}

bool DatasetSource::IsAsPlanned(const PlannedInput& input) {
  return input.sequence < dataset_.size() && dataset_.Key(input.sequence) == input.SourceKey() &&
         dataset_.Info(input.sequence).raw_bytes == input.size;
}

}  // namespace

std::unique_ptr<Source> OpenDatasetSource(const std::filesystem::path& path) {
  return std::make_unique<DatasetSource>(path);
}

}  // namespace shardpack
