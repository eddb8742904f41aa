// Tars: WebDataset samples, or a tar that holds one tar a class as ImageNet's does.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "libshard/pack/archive_file.h"
#include "libshard/pack/forward_bytes.h"
#include "libshard/pack/sample_group.h"
#include "libshard/pack/source.h"
#include "libshard/pack/stream_cursor.h"
#include "libshard/pack/tar_reader.h"
#include "libshard/store/coding.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::size_t kHeaderBytes = 512;

constexpr char kChanged[] = "the archive changed since it was planned";

std::uint32_t HashOf(Bytes bytes) { return static_cast<std::uint32_t>(Xxh3_64(bytes)); }

bool IsTarName(std::string_view path) { return LowerCase(path).ends_with(".tar"); }

// The header's field of eight octal digits holds the sum of all its other bytes and eight spaces.
bool HasChecksum(const std::byte* header) {
  const std::string_view text(reinterpret_cast<const char*>(header), kHeaderBytes);
  std::uint64_t stated = 0, sum = 0;
  for (std::size_t i = 148; i < 156; ++i) {
    if (text[i] >= '0' && text[i] <= '7') stated = stated * 8 + static_cast<std::uint64_t>(text[i] - '0');
  }
  std::int64_t signed_sum = 0;  // what some old programs wrote
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    const char c = i >= 148 && i < 156 ? ' ' : text[i];
    sum += static_cast<unsigned char>(c);
    signed_sum += static_cast<signed char>(c);
  }
  return stated == sum || static_cast<std::int64_t>(stated) == signed_sum;
}

// What a picture is found by again: where its bytes begin in the tar, decompressed where it is compressed; a hash of
// the header before them, which shows a tar that was made anew since; and for a compressed tar its file's size.
struct TarPlace {
  std::uint64_t offset = 0;
  std::uint32_t header_hash = 0;
  std::uint64_t file_size = 0;  // 0 of a plain tar

  std::string Encoded() const {
    std::string text(file_size > 0 ? 20 : 12, '\0');
    Store(text.data(), offset);
    Store(text.data() + 8, header_hash);
    if (file_size > 0) Store(text.data() + 12, file_size);
    return text;
  }
  static TarPlace Of(std::string_view text) {
    if (text.size() != 12 && text.size() != 20) {
      throw Error(ErrorCode::kCorruption, "the plan's place of a tar's member makes no sense");
    }
    return {Load<std::uint64_t>(text.data()), Load<std::uint32_t>(text.data() + 8),
            text.size() == 20 ? Load<std::uint64_t>(text.data() + 12) : 0};
  }
};

// A tar as its reader sees it: looks at `stop`, and keeps what went by last where it cannot be read again.
class Tap : public ForwardBytes {
 public:
  Tap(std::unique_ptr<ForwardBytes> bytes, const std::atomic<bool>* stop, bool keeps)
      : bytes_(std::move(bytes)), stop_(stop), keeps_(keeps) {}

  Bytes Next(std::size_t most) override {
    if (stop_ != nullptr && *stop_) throw Interrupted{};
    const Bytes piece = bytes_->Next(most);
    if (keeps_) Keep(piece);
    return piece;
  }
  std::uint64_t Skip(std::uint64_t count) override { return bytes_->Skip(count); }

  // The block of the tar that ends at `end`. Precondition: it was among what was read last.
  const std::byte* HeaderBefore(std::uint64_t end) const {
    if (end > at_ || end < at_ - kept_.size() + kHeaderBytes) return nullptr;
    return kept_.data() + (kept_.size() - (at_ - end)) - kHeaderBytes;
  }

 private:
  // Two headers of a name and one of the member may be asked for together, and no piece is larger than this by far.
  static constexpr std::size_t kKeptBytes = 64 << 10;

  void Keep(Bytes piece) {
    if (kept_.size() > kKeptBytes) kept_.erase(kept_.begin(), kept_.end() - kKeptBytes);
    kept_.insert(kept_.end(), piece.begin(), piece.end());
    at_ += piece.size();
  }

  std::unique_ptr<ForwardBytes> bytes_;
  const std::atomic<bool>* stop_;
  const bool keeps_;
  std::vector<std::byte> kept_;
  std::uint64_t at_ = 0;
};

class TarSource : public Source {
 public:
  explicit TarSource(const std::filesystem::path& path) : file_(path) {
    const std::string head = file_.Head(kHeaderBytes);
    wrapping_ = WrappingOf(head);
    if (wrapping_ == Wrapping::kZlib) wrapping_ = Wrapping::kPlain;  // no tar is wrapped so; a name may begin so
    if (head.empty()) Fail("empty file (0 bytes)");
    if (wrapping_ != Wrapping::kPlain) return;
    if (head.size() < kHeaderBytes) Fail("is not a tar, or is cut off: it has not even one header");
    const bool ends_at_once = head.find_first_not_of('\0') == std::string::npos;
    if (!ends_at_once && !HasChecksum(AsBytes(head).data())) Fail("is not a tar: its first block is no header");
  }

  SourceKind kind() const override { return SourceKind::kTar; }
  bool IsStream() const override { return wrapping_ != Wrapping::kPlain; }
  void Scan(const std::atomic<bool>* stop, InputSink& sink) override;
  void Read(const PlannedInput& input, std::byte* to) override;
  bool IsAsPlanned(const PlannedInput& input) override;
  std::string Describe(const PlannedInput& input) const override {
    return file_.path().native() + ": " + std::string(input.SourceKey());
  }

 private:
  struct Scanning {
    const std::atomic<bool>* stop;
    InputSink& sink;
    Tap& tap;
    std::uint64_t file_size;
    KeySet keys;                       // of tars in the tar
    std::vector<std::string> classes;  // their names
    std::uint64_t ignored = 0;
  };

  std::string LocatorOf(const Scanning& scan, const TarReader& tar, std::uint64_t begin) const;
  void ScanInner(Scanning& scan, TarReader& outer);
  void AddOfInner(Scanning& scan, TarReader& inner, std::uint64_t begin, const std::string& folder,
                  std::string_view label);
  void ReadPlain(const TarPlace& place, std::byte* to, std::uint64_t size) const;
  void ReadStream(const TarPlace& place, std::byte* to, std::uint64_t size);
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kBadInput, Location{file_.path().native(), {}, {}}, reason);
  }

  ArchiveFile file_;
  Wrapping wrapping_ = Wrapping::kPlain;
  std::optional<StreamCursor> cursor_;
};

std::string TarSource::LocatorOf(const Scanning& scan, const TarReader& tar, std::uint64_t begin) const {
  const std::uint64_t offset = begin + tar.data_offset();
  std::byte read[kHeaderBytes];
  const std::byte* header = read;
  if (IsStream()) {
    header = scan.tap.HeaderBefore(offset);
  } else {
    if (tar.size() > scan.file_size || offset > scan.file_size - tar.size()) {
      tar.Fail("is cut off in the member " + Escaped(tar.path()));
    }
    int error = 0;
    if (!ReadAt(file_.Open()->get(), offset - kHeaderBytes, read, kHeaderBytes, error)) {
      if (error != 0) ThrowSystemError(error, "read", file_.path().native());
      Fail("became shorter while it was being read");
    }
  }
  // Where libarchive's place is not behind a header, what would be packed is not what the tar holds.
  if (header == nullptr || !HasChecksum(header)) {
    tar.Fail("the member " + Escaped(tar.path()) + " is stored in a way that is not supported");
  }
  return TarPlace{offset, HashOf({header, kHeaderBytes}), IsStream() ? scan.file_size : 0}.Encoded();
}

void TarSource::Scan(const std::atomic<bool>* stop, InputSink& sink) {
  Tap tap(ForwardBytes::Open(file_, wrapping_), stop, IsStream());
  TarReader tar(tap, file_.path().native());
  SampleGroups groups(file_.path().native(), sink, IsStream());
  Scanning scan{stop, sink, tap, file_.Size(), {}, {}, 0};
  bool has_tars = false, has_samples = false;
  while (tar.Next()) {
    if (stop != nullptr && *stop) throw Interrupted{};
    const MemberName name = SplitMemberName(tar.path());
    const std::string extension = LowerCase(name.extension);
    const bool is_of_sample = IsCandidateName(name.path) || extension == "cls" || extension == "json";
    has_samples = has_samples || (is_of_sample && !name.hidden);
    if (has_tars && has_samples) {
      Fail("holds tars as well as " + Escaped(tar.path()) + ": it is neither a tar of samples nor one of tars");
    }
    if (IsTarName(name.path) && !name.hidden && !has_samples) {
      has_tars = true;
      ScanInner(scan, tar);
      continue;
    }
    const std::string locator = is_of_sample ? LocatorOf(scan, tar, 0) : std::string();
    groups.Add({tar.path(), tar.size(), tar.data_offset(), locator,
                [&](std::byte* to, std::uint64_t size) { tar.Read(to, size); }});
  }
  groups.AddOther(tar.others() + scan.ignored);
  groups.Finish();
  sink.AddClasses(scan.classes, false);
}

// A class of ImageNet's training archive. In a plain tar the inner one is read by itself, so that pictures are passed
// over.
void TarSource::ScanInner(Scanning& scan, TarReader& outer) {
  const MemberName name = SplitMemberName(outer.path());
  if (name.leaves) Fail(LeavesFolder(outer.path()));
  const std::string folder(name.path.substr(0, name.path.size() - 4));
  const std::string label = folder.substr(folder.rfind('/') + 1);
  const std::uint64_t begin = outer.data_offset();
  std::unique_ptr<Tap> range;
  if (!IsStream()) {
    if (outer.size() > scan.file_size || begin > scan.file_size - outer.size()) {
      Fail("is cut off in the member " + Escaped(outer.path()));
    }
    range = std::make_unique<Tap>(ForwardBytes::OpenRange(file_, begin, outer.size()), scan.stop, false);
  }
  TarReader inner(range ? *range : outer.Content(), file_.path().native() + ": " + std::string(name.path));
  while (inner.Next()) {
    if (scan.stop != nullptr && *scan.stop) throw Interrupted{};
    AddOfInner(scan, inner, begin, folder, label);
  }
  scan.ignored += inner.others();
  scan.classes.push_back(label);
}

void TarSource::AddOfInner(Scanning& scan, TarReader& inner, std::uint64_t begin, const std::string& folder,
                           std::string_view label) {
  const MemberName name = SplitMemberName(inner.path());
  if (name.hidden || !IsCandidateName(name.path)) {
    ++scan.ignored;
    return;
  }
  if (name.leaves) inner.Fail(LeavesFolder(inner.path()));
  const std::string key = folder + '/' + std::string(name.path);
  if (!scan.keys.Insert(key)) inner.Fail("duplicate member: " + Escaped(name.path) + " comes twice");
  const std::string locator = LocatorOf(scan, inner, begin);
  if (IsStream() && inner.size() <= kLargestMember && scan.sink.WantsBytes(key)) {
    std::vector<std::byte> bytes(inner.size());
    inner.Read(bytes.data(), bytes.size());
    scan.sink.Sample(key, bytes);
  }
  FoundInput found;
  found.key = key;
  found.size = inner.size();
  found.sequence = begin + inner.data_offset();
  found.label.text = label;
  found.locator = locator;
  found.bad = TooLarge(inner.size());
  scan.sink.Add(found);
}

void TarSource::Read(const PlannedInput& input, std::byte* to) {
  const TarPlace place = TarPlace::Of(input.locator);
  try {
    if (IsStream()) {
      ReadStream(place, to, input.size);
    } else {
      ReadPlain(place, to, input.size);
    }
  } catch (const Error& e) {
    throw ForInput(e);
  }
}

void TarSource::ReadPlain(const TarPlace& place, std::byte* to, std::uint64_t size) const {
  const SharedFd fd = file_.Open();
  std::byte header[kHeaderBytes];
  int error = 0;
  const bool is_there = place.offset >= kHeaderBytes &&
                        ReadAt(fd->get(), place.offset - kHeaderBytes, header, kHeaderBytes, error) &&
                        ReadAt(fd->get(), place.offset, to, size, error);
  if (error != 0) ThrowUnreadableArchive(error, "read");
  if (!is_there || HashOf(header) != place.header_hash) throw Error(ErrorCode::kBadInput, kChanged);
}

void TarSource::ReadStream(const TarPlace& place, std::byte* to, std::uint64_t size) {
  if (!cursor_) cursor_.emplace(file_, wrapping_);
  std::byte header[kHeaderBytes];
  const bool is_there = place.offset >= kHeaderBytes &&
                        cursor_->Read(place.offset - kHeaderBytes, header, kHeaderBytes) &&
                        HashOf(header) == place.header_hash && cursor_->Read(place.offset, to, size);
  if (!is_there) throw Error(ErrorCode::kBadInput, kChanged);
}

bool TarSource::IsAsPlanned(const PlannedInput& input) {
  const TarPlace place = TarPlace::Of(input.locator);
  const std::uint64_t size = file_.Size();
  if (IsStream()) return size == place.file_size;
  if (place.offset < kHeaderBytes || input.size > size || place.offset > size - input.size) return false;
  std::byte header[kHeaderBytes];
  int error = 0;
  const bool is_there = ReadAt(file_.Open()->get(), place.offset - kHeaderBytes, header, kHeaderBytes, error);
  if (error != 0) ThrowUnreadableArchive(error, "read");
  return is_there && HashOf(header) == place.header_hash;
}

}  // namespace

std::unique_ptr<Source> OpenTarSource(const std::filesystem::path& path) { return std::make_unique<TarSource>(path); }

}  // namespace shardpack
