// TFRecord files of tf.train.Example.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "libshard/pack/archive_file.h"
#include "libshard/pack/crc32c.h"
#include "libshard/pack/forward_bytes.h"
#include "libshard/pack/json_text.h"
#include "libshard/pack/key_set.h"
#include "libshard/pack/member_name.h"
#include "libshard/pack/sample_label.h"
#include "libshard/pack/source.h"
#include "libshard/pack/stream_cursor.h"
#include "libshard/pack/tf_example.h"
#include "libshard/pack/tfrecord_reader.h"
#include "libshard/store/coding.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr char kFilename[] = "image/filename";
constexpr std::size_t kLeastBytes = 16;     // of a record: length, two checksums
constexpr std::size_t kLongestText = 4096;  // of a feature that becomes metadata
constexpr std::size_t kLongestKey = 4096;
constexpr std::size_t kMostNames = 20, kLongestName = 100;  // that a message lists
constexpr std::size_t kMostLabels = 1 << 16;                // in a list
constexpr std::size_t kMostBadAtFirst = 1000;  // records before the first good one, which says what labels are
constexpr char kChanged[] = "the TFRecord file changed since it was planned";

// What a picture is found by again: where its bytes begin, in what the file unpacks to; the number of its record; their
// hash; the size of the file.
struct RecordPlace {
  std::uint64_t offset = 0, record = 0, file_size = 0;
  std::uint32_t hash = 0;

  std::string Encoded() const {
    std::string text(kBytes, '\0');
    Store(text.data(), offset);
    Store(text.data() + 8, record);
    Store(text.data() + 16, file_size);
    Store(text.data() + 24, hash);
    return text;
  }
  static RecordPlace Of(std::string_view text) {
    if (text.size() != kBytes) throw Error(ErrorCode::kCorruption, "the plan's place of a record makes no sense");
    return {Load<std::uint64_t>(text.data()), Load<std::uint64_t>(text.data() + 8),
            Load<std::uint64_t>(text.data() + 16), Load<std::uint32_t>(text.data() + 24)};
  }

 private:
  static constexpr std::size_t kBytes = 28;
};

std::uint32_t HashOf(Bytes bytes) { return static_cast<std::uint32_t>(Xxh3_64(bytes)); }

std::string NumberKey(std::uint64_t record) {
  std::string digits = std::to_string(record);
  return std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

[[noreturn]] void ThrowBad(const std::string& reason) { throw Error(ErrorCode::kBadInput, reason); }

// The file name of a record, where it can be a key.
std::optional<std::string> FilenameOf(const TfExample& example) {
  const TfFeature* feature = example.Find(kFilename);
  if (feature == nullptr || feature->kind() != TfFeature::Kind::kBytes) return std::nullopt;
  const auto values = feature->ByteStrings(2);
  if (values.size() != 1) return std::nullopt;
  const MemberName name = SplitMemberName(values[0]);
  const bool is_key = !name.path.empty() && !name.path.ends_with('/') && !name.leaves &&
                      name.path.size() <= kLongestKey && name.path.find('\0') == std::string_view::npos;
  return is_key ? std::optional<std::string>(name.path) : std::nullopt;
}

OwnedLabel LabelOf(const TfFeature& feature) {
  switch (feature.kind()) {
    case TfFeature::Kind::kInt64: {
      const auto numbers = feature.Int64s(kMostLabels + 1);
      if (numbers.empty()) break;
      if (numbers.size() == 1) return {LabelKind::kInteger, numbers[0], {}};
      if (numbers.size() > kMostLabels) ThrowBad("the label is a list of more than 65,536 numbers");
      OwnedLabel list{LabelKind::kList, 0, "["};
      for (const std::int64_t number : numbers) list.text += std::to_string(number) + ',';
      list.text.back() = ']';
      return list;
    }
    case TfFeature::Kind::kFloat: {
      const auto numbers = feature.Floats(2);
      if (numbers.empty()) break;
      if (numbers.size() > 1) ThrowBad("the label is a list of floats");
      return FloatLabel(numbers[0]);
    }
    case TfFeature::Kind::kBytes: {
      const auto names = feature.ByteStrings(2);
      if (names.empty() || (names.size() == 1 && names[0].empty())) break;
      if (names.size() > 1) ThrowBad("the label is a list of names");
      return {LabelKind::kClass, 0, std::string(names[0])};
    }
    case TfFeature::Kind::kNone:
      break;
  }
  ThrowBad("the label is empty");
}

// The one value of a feature, where it is small and JSON can say it.
std::optional<nlohmann::ordered_json> ScalarOf(const TfFeature& feature) {
  if (feature.kind() == TfFeature::Kind::kInt64) {
    const auto values = feature.Int64s(2);
    if (values.size() == 1) return values[0];
  } else if (feature.kind() == TfFeature::Kind::kFloat) {
    const auto values = feature.Floats(2);
    if (values.size() == 1 && std::isfinite(values[0])) return static_cast<double>(values[0]);
  } else if (feature.kind() == TfFeature::Kind::kBytes) {
    const auto values = feature.ByteStrings(2);
    if (values.size() == 1 && values[0].size() <= kLongestText && IsUtf8(values[0])) return std::string(values[0]);
  }
  return std::nullopt;
}

class TfrecordSource : public Source {
 public:
  TfrecordSource(const std::filesystem::path& path, const PackOptions& options)
      : file_(path), image_feature_(options.image_feature), label_feature_(options.label_feature) {
    const std::string head = file_.Head(kLeastBytes);
    if (head.empty()) Fail("empty file (0 bytes)");
    // The first length's checksum tells a plain file from one whose length looks like the magic of a compressed one.
    const bool is_plain =
        head.size() >= 12 && Load<std::uint32_t>(head.data() + 8) == MaskedCrc32c(AsBytes(head).first(8));
    if (!is_plain) wrapping_ = WrappingOf(head);
    if (!is_plain && wrapping_ == Wrapping::kPlain) {
      Fail("is not a TFRecord file: the length of its first record contradicts its checksum");
    }
  }

  SourceKind kind() const override { return SourceKind::kTfrecord; }
  bool IsStream() const override { return wrapping_ != Wrapping::kPlain; }
  void Scan(const std::atomic<bool>* stop, InputSink& sink) override;
  void Read(const PlannedInput& input, std::byte* to) override;
  bool IsAsPlanned(const PlannedInput& input) override;
  std::string Describe(const PlannedInput& input) const override {
    std::string text = file_.path().native() + ": ";
    if (input.locator.empty()) return text + std::string(input.SourceKey());
    const std::string number = std::to_string(RecordPlace::Of(input.locator).record);
    return text + "record " + number + " (" + std::string(input.SourceKey()) + ")";
  }

 private:
  struct BadRecord {
    std::uint64_t number = 0, offset = 0;
    std::string reason;
  };
  struct Scanning {
    InputSink& sink;
    std::uint64_t file_size;
    bool by_filename;
    std::optional<OwnedLabel> label;  // of the last good record: bad ones have none, and must not be of another kind
    std::vector<BadRecord> waiting;   // before the first good one
  };

  template <typename Take>
  void ForEachRecord(const std::atomic<bool>* stop, const Take& take);
  bool AllHaveFilenames(const std::atomic<bool>* stop);
  void AddRecord(Scanning& scan, const TfRecordReader& record);
  void AddBad(Scanning& scan, const BadRecord& bad);
  void AddExample(Scanning& scan, const TfRecordReader& record, const TfExample& example);
  void AddWaiting(Scanning& scan);
  std::string_view PictureOf(const TfExample& example) const;
  std::string MetadataOf(const TfExample& example, const OwnedLabel& label, bool by_filename) const;
  [[noreturn]] void FailForNames(const TfRecordReader& record, const TfExample& example) const;
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kBadInput, Location{file_.path().native(), {}, {}}, reason);
  }

  ArchiveFile file_;
  const std::string image_feature_, label_feature_;
  Wrapping wrapping_ = Wrapping::kPlain;
  std::optional<StreamCursor> cursor_;
};

template <typename Take>
void TfrecordSource::ForEachRecord(const std::atomic<bool>* stop, const Take& take) {
  const auto bytes = ForwardBytes::Open(file_, wrapping_);
  TfRecordReader records(*bytes, file_.path().native(),
                         IsStream() ? std::numeric_limits<std::uint64_t>::max() : file_.Size());
  while (records.Next()) {
    if (stop != nullptr && *stop) throw Interrupted{};
    if (!take(records)) return;
  }
}

// File names are keys only where every record has one of its own, so the file is read once more for them. A file whose
// first record has none is not.
bool TfrecordSource::AllHaveFilenames(const std::atomic<bool>* stop) {
  KeySet seen;
  bool all = true, any = false;
  ForEachRecord(stop, [&](const TfRecordReader& record) {
    if (!record.damage().empty()) return true;
    try {
      const auto name = FilenameOf(TfExample(record.data()));
      any = true;
      all = name.has_value() && seen.Insert(*name);
    } catch (const Error&) {
      // A record that makes no sense is bad, and says nothing of the others.
    }
    return all;
  });
  return all && any;
}

void TfrecordSource::Scan(const std::atomic<bool>* stop, InputSink& sink) {
  Scanning scan{sink, file_.Size(), AllHaveFilenames(stop), std::nullopt, {}};
  ForEachRecord(stop, [&](const TfRecordReader& record) {
    AddRecord(scan, record);
    return true;
  });
  if (!scan.label) scan.label.emplace(OwnedLabel{LabelKind::kInteger, 0, {}});
  AddWaiting(scan);
}

void TfrecordSource::AddRecord(Scanning& scan, const TfRecordReader& record) {
  BadRecord bad{record.number(), record.record_offset(), record.damage()};
  if (bad.reason.empty()) {
    try {
      const TfExample example(record.data());
      const bool has_both = example.Find(image_feature_) != nullptr && example.Find(label_feature_) != nullptr;
      // Where already the first record has other names, it is the names that are wrong.
      if (!has_both && !scan.label) FailForNames(record, example);
      AddExample(scan, record, example);
      return;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kBadInput || !e.where().path.empty()) throw;
      bad.reason = e.reason();
    }
  }
  if (scan.label) {
    AddBad(scan, bad);
  } else {
    if (scan.waiting.size() == kMostBadAtFirst) record.Fail("none of the records so far is whole: " + bad.reason);
    scan.waiting.push_back(bad);
  }
}

void TfrecordSource::FailForNames(const TfRecordReader& record, const TfExample& example) const {
  const bool lacks_image = example.Find(image_feature_) == nullptr;
  std::string names;
  std::size_t count = 0;
  for (const auto& [name, feature] : example.features()) {
    if (++count > kMostNames) break;
    names += (names.empty() ? "" : ", ") + Escaped(name.substr(0, kLongestName));
  }
  record.Fail("has no feature " + Escaped(lacks_image ? image_feature_ : label_feature_) + "; it has " +
              (names.empty() ? "none" : names + (count > kMostNames ? ", ..." : "")) + ". Name the " +
              (lacks_image ? "picture's with --image-feature" : "label's with --label-feature"));
}

std::string_view TfrecordSource::PictureOf(const TfExample& example) const {
  const TfFeature* feature = example.Find(image_feature_);
  if (feature == nullptr) ThrowBad("has no feature " + Escaped(image_feature_));
  if (feature->kind() != TfFeature::Kind::kBytes)
    ThrowBad("the feature " + Escaped(image_feature_) + " holds no bytes");
  const auto values = feature->ByteStrings(2);
  if (values.size() == 1) return values[0];
  ThrowBad("the feature " + Escaped(image_feature_) + (values.empty() ? " is empty" : " holds several pictures"));
}

void TfrecordSource::AddExample(Scanning& scan, const TfRecordReader& record, const TfExample& example) {
  const std::string_view picture = PictureOf(example);
  const TfFeature* label_feature = example.Find(label_feature_);
  if (label_feature == nullptr) ThrowBad("has no label: no feature " + Escaped(label_feature_));
  OwnedLabel label = LabelOf(*label_feature);
  const std::string metadata = MetadataOf(example, label, scan.by_filename);
  scan.label = std::move(label);
  AddWaiting(scan);

  const std::string key = scan.by_filename ? *FilenameOf(example) : NumberKey(record.number());
  if (IsStream() && scan.sink.WantsBytes(key)) scan.sink.Sample(key, AsBytes(picture));
  const auto in_record = static_cast<std::uint64_t>(picture.data() - record.data().data());
  const std::string locator =
      RecordPlace{record.data_offset() + in_record, record.number(), scan.file_size, HashOf(AsBytes(picture))}
          .Encoded();
  FoundInput found;
  found.key = key;
  found.size = picture.size();
  found.sequence = record.number();
  found.label = scan.label->view();
  found.metadata = metadata;
  found.locator = locator;
  scan.sink.Add(found);
}

void TfrecordSource::AddWaiting(Scanning& scan) {
  for (const BadRecord& bad : scan.waiting) AddBad(scan, bad);
  scan.waiting.clear();
}

void TfrecordSource::AddBad(Scanning& scan, const BadRecord& bad) {
  const std::string key = NumberKey(bad.number);
  const std::string locator = RecordPlace{0, bad.number, scan.file_size, 0}.Encoded();
  const std::string reason =
      "record " + std::to_string(bad.number) + " at byte " + std::to_string(bad.offset) + ": " + bad.reason;
  FoundInput found;
  found.key = key;
  found.sequence = bad.number;
  found.label = scan.label->view();
  found.locator = locator;
  found.bad = reason;
  scan.sink.Add(found);
}

std::string TfrecordSource::MetadataOf(const TfExample& example, const OwnedLabel& label, bool by_filename) const {
  // A record's own label may stand there under this name.
  const bool is_label_taken = label.kind == LabelKind::kList || label.kind == LabelKind::kFloat;
  nlohmann::ordered_json object;
  for (const auto& [name, feature] : example.features()) {
    if (name == image_feature_ || name == label_feature_ || (by_filename && name == kFilename)) continue;
    if (!IsUtf8(name) || name.size() > kLongestText) continue;
    if (auto value = ScalarOf(feature)) {
      object[is_label_taken && name == "label" ? "feature/label" : std::string(name)] = std::move(*value);
    }
  }
  return object.empty() ? std::string() : object.dump();
}

void TfrecordSource::Read(const PlannedInput& input, std::byte* to) {
  const RecordPlace place = RecordPlace::Of(input.locator);
  try {
    if (IsStream()) {
      if (!cursor_) cursor_.emplace(file_, wrapping_);
      if (!cursor_->Read(place.offset, to, input.size)) ThrowBad(kChanged);
    } else {
      int error = 0;
      const bool is_there = ReadAt(file_.Open()->get(), place.offset, to, input.size, error);
      if (error != 0) ThrowUnreadableArchive(error, "read");
      if (!is_there) ThrowBad(kChanged);
    }
  } catch (const Error& e) {
    throw ForInput(e);
  }
  if (HashOf({to, input.size}) != place.hash) ThrowBad(kChanged);
}

bool TfrecordSource::IsAsPlanned(const PlannedInput& input) {
  return file_.Size() == RecordPlace::Of(input.locator).file_size;
}

}  // namespace

std::unique_ptr<Source> OpenTfrecordSource(const std::filesystem::path& path, const PackOptions& options) {
  return std::make_unique<TfrecordSource>(path, options);
}

}  // namespace shardpack
