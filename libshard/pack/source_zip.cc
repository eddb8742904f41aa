// Zip archives: class folders, or WebDataset samples where labels lie beside the pictures.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <set>
#include <vector>

#include "libshard/pack/archive_file.h"
#include "libshard/pack/key_set.h"
#include "libshard/pack/sample_group.h"
#include "libshard/pack/source.h"
#include "libshard/pack/zip_handles.h"
#include "libshard/store/coding.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr char kChanged[] = "the archive changed since it was planned";
constexpr std::uint64_t kStopEvery = 256;
// Deflate makes 1,032 bytes of one at most, and a little for its last block.
constexpr std::uint64_t kDeflateFactor = 1032, kDeflateSlack = 1024;
constexpr std::uint64_t kLargestJson = 16 << 20;

struct ZipPlace {
  std::uint64_t index = 0, file_size = 0;
  std::uint32_t crc = 0;

  std::string Encoded() const {
    std::string text(kBytes, '\0');
    Store(text.data(), index);
    Store(text.data() + 8, file_size);
    Store(text.data() + 16, crc);
    return text;
  }
  static ZipPlace Of(std::string_view text) {
    if (text.size() != kBytes) throw Error(ErrorCode::kCorruption, "the plan's place of a zip's member makes no sense");
    return {Load<std::uint64_t>(text.data()), Load<std::uint64_t>(text.data() + 8),
            Load<std::uint32_t>(text.data() + 16)};
  }

 private:
  static constexpr std::size_t kBytes = 20;
};

// What the directory says of a member.
struct ZipEntry {
  std::uint64_t index = 0;
  std::string name;  // byte for byte
  std::uint64_t size = 0, compressed = 0;
  std::uint32_t crc = 0;
  std::uint16_t method = 0;
  bool encrypted = false, is_file = false, is_folder = false;
};

[[noreturn]] void ThrowMember(zip_error_t* error) {
  const int code = zip_error_code_zip(error), system = zip_error_code_system(error);
  if (code == ZIP_ER_MEMORY) throw std::bad_alloc();
  if (code == ZIP_ER_READ || code == ZIP_ER_SEEK || code == ZIP_ER_OPEN) {
    ThrowUnreadableArchive(system != 0 ? system : EIO, "read");
  }
  std::string reason = code == ZIP_ER_CRC ? "its bytes contradict the checksum in the archive"
                                          : "cannot be unpacked: " + Escaped(zip_error_strerror(error));
  throw Error(ErrorCode::kBadInput, reason);
}

// Reads the whole member and the end behind it, where libzip compares the checksum.
void ReadMember(zip_t* zip, std::uint64_t index, std::byte* to, std::uint64_t size) {
  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(zip, index, 0), zip_fclose);
  if (!file) ThrowMember(zip_get_error(zip));
  std::byte beyond;
  for (std::uint64_t done = 0; done <= size;) {
    const bool at_end = done == size;
    const zip_int64_t got = zip_fread(file.get(), at_end ? &beyond : to + done,
                                      at_end ? 1 : std::min<std::uint64_t>(size - done, 1u << 30));
    if (got < 0) ThrowMember(zip_file_get_error(file.get()));
    if (got == 0 && at_end) return;
    if (got == 0) throw Error(ErrorCode::kBadInput, "is shorter than the archive's directory says");
    done += static_cast<std::uint64_t>(got);
  }
  throw Error(ErrorCode::kBadInput, "is longer than the archive's directory says");
}

std::string_view BadReason(const ZipEntry& entry) {
  if (entry.encrypted) return "is encrypted";
  if (zip_compression_method_supported(entry.method, 0) == 0) return "is compressed in a way that is not supported";
  const bool is_stored = entry.method == ZIP_CM_STORE, is_deflated = entry.method == ZIP_CM_DEFLATE;
  const bool fits = entry.size <= kDeflateSlack || (entry.size - kDeflateSlack) / kDeflateFactor <= entry.compressed;
  if ((is_stored && entry.size != entry.compressed) || (is_deflated && !fits)) {
    return "the size in the archive's directory cannot be true";
  }
  return TooLarge(entry.size);
}

bool IsLink(zip_t* zip, std::uint64_t index) {
  zip_uint8_t system = 0;
  zip_uint32_t attributes = 0;
  if (zip_file_get_external_attributes(zip, index, 0, &system, &attributes) != 0) return false;
  return system == ZIP_OPSYS_UNIX && S_ISLNK(attributes >> 16);
}

bool EntryAt(zip_t* zip, std::uint64_t index, ZipEntry& entry) {
  zip_stat_t stat;
  if (zip_stat_index(zip, index, ZIP_FL_ENC_RAW, &stat) != 0) return false;
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD;
  if ((stat.valid & kNeeded) != kNeeded) return false;
  entry.index = index;
  entry.name = stat.name;
  entry.size = stat.size;
  entry.compressed = stat.comp_size;
  entry.crc = stat.crc;
  entry.method = stat.comp_method;
  entry.encrypted = (stat.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && stat.encryption_method != ZIP_EM_NONE;
  entry.is_folder = entry.name.ends_with('/');
  entry.is_file = !entry.is_folder && !IsLink(zip, index);
  return true;
}

class ZipSource : public Source {
 public:
  explicit ZipSource(const std::filesystem::path& path) : file_(path), zips_(path) {
    const std::string head = file_.Head(4);
    if (head.empty()) Fail("empty file (0 bytes)");
    // A member, an archive without any, or the first piece of one in pieces.
    if (head != "PK\x03\x04" && head != "PK\x05\x06" && head != "PK\x07\x08") Fail("is not a zip archive");
  }

  SourceKind kind() const override { return SourceKind::kZip; }
  bool IsStream() const override { return false; }
  void Scan(const std::atomic<bool>* stop, InputSink& sink) override;
  void Read(const PlannedInput& input, std::byte* to) override;
  bool IsAsPlanned(const PlannedInput& input) override { return file_.Size() == ZipPlace::Of(input.locator).file_size; }
  std::string Describe(const PlannedInput& input) const override {
    return file_.path().native() + ": " + std::string(input.SourceKey());
  }

 private:
  template <typename Take>
  void ForEachEntry(zip_t* zip, const std::atomic<bool>* stop, const Take& take) const;
  bool HasLabelsBesidePictures(zip_t* zip, const std::atomic<bool>* stop) const;
  void ScanSamples(zip_t* zip, const std::atomic<bool>* stop, InputSink& sink);
  void ScanFolders(zip_t* zip, const std::atomic<bool>* stop, InputSink& sink);
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kBadInput, Location{file_.path().native(), {}, {}}, reason);
  }

  ArchiveFile file_;
  ZipHandles zips_;
};

template <typename Take>
void ZipSource::ForEachEntry(zip_t* zip, const std::atomic<bool>* stop, const Take& take) const {
  const zip_int64_t count = zip_get_num_entries(zip, 0);
  ZipEntry entry;
  for (zip_int64_t i = 0; i < count; ++i) {
    if (stop != nullptr && i % kStopEvery == 0 && *stop) throw Interrupted{};
    const auto index = static_cast<std::uint64_t>(i);
    if (!EntryAt(zip, index, entry)) Fail("is damaged: its directory says nothing of member " + std::to_string(i));
    if (!take(entry, SplitMemberName(entry.name))) return;
  }
}

// A .cls that shares its key with a picture is a label; a .json only where it says "label", for many tools leave other
// things there.
bool ZipSource::HasLabelsBesidePictures(zip_t* zip, const std::atomic<bool>* stop) const {
  KeySet cls, json;
  bool any = false;
  ForEachEntry(zip, stop, [&](const ZipEntry& entry, const MemberName& name) {
    const std::string extension = LowerCase(name.extension);
    if (!entry.is_file || name.hidden || (extension != "cls" && extension != "json")) return true;
    (extension == "cls" ? cls : json).Insert(name.key);
    any = true;
    return true;
  });
  if (!any) return false;
  bool has_cls = false;
  KeySet json_of_pictures;
  bool has_json = false;
  ForEachEntry(zip, stop, [&](const ZipEntry& entry, const MemberName& name) {
    if (!entry.is_file || name.hidden || !IsCandidateName(name.path)) return true;
    has_cls = has_cls || cls.Has(name.key);
    if (!has_json && json.Has(name.key)) {
      json_of_pictures.Insert(name.key);
      has_json = true;
    }
    return !has_cls;
  });
  if (has_cls || !has_json) return has_cls;
  bool has_label = false;
  ForEachEntry(zip, stop, [&](const ZipEntry& entry, const MemberName& name) {
    if (!entry.is_file || LowerCase(name.extension) != "json" || !json_of_pictures.Has(name.key)) return true;
    try {
      if (entry.size > kLargestJson || !BadReason(entry).empty()) return false;
      std::string text(entry.size, '\0');
      ReadMember(zip, entry.index, reinterpret_cast<std::byte*>(text.data()), text.size());
      has_label = ParseLabelledObject(text).label.has_value();
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kBadInput) throw;
    }
    return false;
  });
  return has_label;
}

void ZipSource::Scan(const std::atomic<bool>* stop, InputSink& sink) {
  const ZipHandles::Loan zip = zips_.Borrow();
  if (HasLabelsBesidePictures(zip.get(), stop)) {
    ScanSamples(zip.get(), stop, sink);
  } else {
    ScanFolders(zip.get(), stop, sink);
  }
}

void ZipSource::ScanSamples(zip_t* zip, const std::atomic<bool>* stop, InputSink& sink) {
  const std::uint64_t file_size = file_.Size();
  SampleGroups groups(file_.path().native(), sink, false);
  ForEachEntry(zip, stop, [&](const ZipEntry& entry, const MemberName&) {
    if (!entry.is_file) {
      groups.AddOther(entry.is_folder ? 0 : 1);
      return true;
    }
    const std::string locator = ZipPlace{entry.index, file_size, entry.crc}.Encoded();
    const auto read = [&](std::byte* to, std::uint64_t size) {
      const std::string_view bad = BadReason(entry);
      if (!bad.empty()) throw Error(ErrorCode::kBadInput, std::string(bad));
      ReadMember(zip, entry.index, to, size);
    };
    groups.Add({entry.name, entry.size, entry.index, locator, read, BadReason(entry)});
    return true;
  });
  groups.Finish();
}

void ZipSource::ScanFolders(zip_t* zip, const std::atomic<bool>* stop, InputSink& sink) {
  const std::uint64_t file_size = file_.Size();
  std::set<std::string, std::less<>> classes;
  std::set<std::string_view> with_pictures;  // into `classes`
  std::uint64_t ignored = 0, in_no_folder = 0, pictures = 0, deeper = 0;
  std::string first_in_no_folder;
  ForEachEntry(zip, stop, [&](const ZipEntry& entry, const MemberName& name) {
    if (name.hidden) {
      ignored += entry.is_folder ? 0 : 1;
      return true;
    }
    if (name.leaves) Fail(LeavesFolder(entry.name));
    const std::size_t slash = name.path.find('/');
    const std::string_view top = name.path.substr(0, slash == std::string_view::npos ? 0 : slash);
    auto found = classes.end();
    if (!top.empty()) {
      found = classes.find(top);
      if (found == classes.end()) found = classes.emplace(top).first;
    }
    if (entry.is_folder) return true;
    if (!entry.is_file || !IsCandidateName(name.path)) {
      ++ignored;
      return true;
    }
    if (found == classes.end()) {
      ++ignored;
      if (in_no_folder++ == 0) first_in_no_folder = name.path;
      return true;
    }
    ++pictures;
    with_pictures.insert(*found);
    if (name.path.find('/', slash + 1) != std::string_view::npos) ++deeper;
    const std::string locator = ZipPlace{entry.index, file_size, entry.crc}.Encoded();
    FoundInput input;
    input.key = name.path;
    input.size = entry.size;
    input.sequence = entry.index;
    input.label.text = top;
    input.locator = locator;
    input.bad = BadReason(entry);
    sink.Add(input);
    return true;
  });
  sink.AddIgnored(ignored);
  sink.AddClasses({classes.begin(), classes.end()}, false);
  const std::string archive = Escaped(file_.path().native());
  if (in_no_folder > 0) {
    sink.Warn(archive + ": " + std::to_string(in_no_folder) + (in_no_folder == 1 ? " picture lies" : " pictures lie") +
              " in no class folder and " + (in_no_folder == 1 ? "is" : "are") + " left out (" +
              Escaped(first_in_no_folder) + (in_no_folder > 1 ? ", ...)" : ")"));
  }
  if (with_pictures.size() == 1 && pictures == deeper) {
    sink.Warn(archive + ": all pictures lie in folders of the one folder " + Escaped(*with_pictures.begin()) +
              ", which is the only class: were its folders meant, zip them from inside it");
  }
}

void ZipSource::Read(const PlannedInput& input, std::byte* to) {
  const ZipPlace place = ZipPlace::Of(input.locator);
  try {
    const ZipHandles::Loan zip = zips_.Borrow();
    ZipEntry entry;
    const auto count = static_cast<std::uint64_t>(std::max<zip_int64_t>(zip_get_num_entries(zip.get(), 0), 0));
    if (place.index >= count || !EntryAt(zip.get(), place.index, entry) || entry.crc != place.crc ||
        entry.size != input.size) {
      throw Error(ErrorCode::kBadInput, kChanged);
    }
    ReadMember(zip.get(), place.index, to, input.size);
  } catch (const Error& e) {
    throw ForInput(e);
  }
}

}  // namespace

std::unique_ptr<Source> OpenZipSource(const std::filesystem::path& path) { return std::make_unique<ZipSource>(path); }

}  // namespace shardpack
