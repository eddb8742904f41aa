// HDF5 files with arrays of images and labels.
#include "libshard/pack/source.h"
#include "shardpack/error.h"

#if SHARDPACK_HAVE_HDF5
#include <algorithm>
#include <cstring>

#include "libshard/hdf5/array_file.h"
#include "libshard/pack/sample_label.h"
#include "libshard/pack/task_arena.h"
#include "shardpack/transcode.h"
#endif

namespace shardpack {

#if SHARDPACK_HAVE_HDF5
namespace {

constexpr std::uint64_t kLabelsAtOnce = 65536;
constexpr std::uint64_t kPixelsHeaderBytes = 16;  // docs/formats/pixels.md
constexpr std::size_t kLeastKeyDigits = 6;
constexpr std::uint64_t kLargestRecord = 0xFFFFFFFF;

class ArraysSource : public Source {
 public:
  explicit ArraysSource(const std::filesystem::path& path);

  SourceKind kind() const override { return SourceKind::kDataset; }
  bool IsStream() const override { return false; }
  void Scan(const std::atomic<bool>* stop, InputSink& sink) override;
  void Read(const PlannedInput& input, std::byte* to) override;
  bool IsAsPlanned(const PlannedInput& input) override {
    return input.sequence < file_.size() && (pixels_size_ == 0 || input.size == pixels_size_);
  }
  std::string Describe(const PlannedInput& input) const override {
    return path_.native() + ": images[" + std::to_string(input.sequence) + "]";
  }

 private:
  struct Labels {
    std::uint64_t first = 0;
    std::vector<std::int64_t> whole;
    std::vector<double> fractional;
  };

  OwnedLabel LabelOf(const Labels& labels, std::uint64_t index) const;
  void Add(const Labels& labels, std::uint64_t index, InputSink& sink) const;
  void ReadBytes(std::uint64_t index, std::vector<std::byte>& out) const;

  const std::filesystem::path path_;
  const ArrayFile file_;
  std::uint64_t pixels_size_ = 0;  // of each image's encoded form; 0: they are files
  std::size_t key_digits_ = kLeastKeyDigits;
};

ArraysSource::ArraysSource(const std::filesystem::path& path) : path_(path), file_(ArrayFile::Open(path)) {
  const ArrayFile::Form& form = file_.form();
  if (!form.holds_files) pixels_size_ = kPixelsHeaderBytes + form.image_bytes + form.height;
  if (pixels_size_ > kLargestRecord) {
    throw Error(ErrorCode::kUnsupported, Location{path.native(), {}, {}}, "its images are of 4 GiB or more each");
  }
  if (file_.size() > 0) key_digits_ = std::max(kLeastKeyDigits, std::to_string(file_.size() - 1).size());
}

OwnedLabel ArraysSource::LabelOf(const Labels& labels, std::uint64_t index) const {
  const auto fail = [&](const std::string& reason) {
    throw Error(ErrorCode::kBadInput, Location{path_.native(), {}, {}},
                "labels[" + std::to_string(index) + "]: " + reason);
  };
  if (file_.has_fractional_labels()) {
    try {
      return FloatLabel(labels.fractional[index - labels.first]);
    } catch (const Error& e) {
      fail(e.reason());
    }
  }
  OwnedLabel label{LabelKind::kInteger, labels.whole[index - labels.first], {}};
  if (file_.classes().empty()) return label;
  if (label.number < 0 || static_cast<std::uint64_t>(label.number) >= file_.classes().size()) {
    fail("the label " + std::to_string(label.number) + " is none of the file's " +
         std::to_string(file_.classes().size()) + " classes");
  }
  label.kind = LabelKind::kClass;
  label.text = file_.classes()[static_cast<std::size_t>(label.number)];
  return label;
}

void ArraysSource::Add(const Labels& labels, std::uint64_t index, InputSink& sink) const {
  std::string key = std::to_string(index);
  key.insert(0, key_digits_ - key.size(), '0');
  const OwnedLabel label = LabelOf(labels, index);
  FoundInput found;
  found.key = key;
  found.size = pixels_size_;
  found.sequence = index;
  found.label = label.view();
  if (pixels_size_ == 0) {
    // libhdf5 tells an array's length by reading it.
    thread_local std::vector<std::byte> bytes;
    file_.ReadImageFile(index, bytes);
    found.size = bytes.size();
  }
  sink.Add(found);
}

void ArraysSource::Scan(const std::atomic<bool>* stop, InputSink& sink) {
  if (!file_.classes().empty()) sink.AddClasses(file_.classes(), true);
  Labels labels;
  for (; labels.first < file_.size(); labels.first += kLabelsAtOnce) {
    const std::uint64_t count = std::min(kLabelsAtOnce, file_.size() - labels.first);
    if (file_.has_fractional_labels()) {
      file_.ReadLabels(labels.first, count, labels.fractional);
    } else {
      file_.ReadLabels(labels.first, count, labels.whole);
    }
    for (std::uint64_t i = labels.first; i < labels.first + count; ++i) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw Interrupted{};
      Add(labels, i, sink);
    }
  }
}

void ArraysSource::ReadBytes(std::uint64_t index, std::vector<std::byte>& out) const {
  if (pixels_size_ == 0) {
    file_.ReadImageFile(index, out);
    return;
  }
  thread_local Samples samples;
  const ArrayFile::Form& form = file_.form();
  samples.width = form.width;
  samples.height = form.height;
  samples.channels = form.channels;
  samples.bit_depth = form.bit_depth;
  file_.ReadSamples(index, samples.data);
  EncodePixels(samples, out);
}

void ArraysSource::Read(const PlannedInput& input, std::byte* to) {
  thread_local std::vector<std::byte> bytes;
  if (input.sequence >= file_.size()) throw Error(ErrorCode::kBadInput, "the file does not have it any more");
  try {
    ReadBytes(input.sequence, bytes);
  } catch (const Error& e) {
    throw Error(e.code() == ErrorCode::kIo ? ErrorCode::kIo : ErrorCode::kBadInput, e.reason());
  }
  if (bytes.size() != input.size) throw Error(ErrorCode::kBadInput, "the file changed while it was being packed");
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

}  // namespace

std::unique_ptr<Source> OpenArraysSource(const std::filesystem::path& path) {
  return std::make_unique<ArraysSource>(path);
}
#else
std::unique_ptr<Source> OpenArraysSource(const std::filesystem::path& path) {
  throw Error(ErrorCode::kUnsupported, Location{path.native(), {}, {}},
              "this build has no HDF5, and so reads no HDF5 files (SHARDPACK_WITH_HDF5)");
}
#endif

}  // namespace shardpack
