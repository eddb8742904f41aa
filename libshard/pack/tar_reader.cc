#include "libshard/pack/tar_reader.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "libshard/pack/c_locale.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kBlock = 512;

std::uint64_t RoundedUp(std::uint64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

}  // namespace

// Between libarchive, which is C, and bytes that throw: an exception waits here until the call is over.
class TarReader::Callbacks {
 public:
  explicit Callbacks(ForwardBytes& bytes) : bytes_(bytes) {}

  static la_ssize_t Read(archive* reader, void* self, const void** buffer) {
    return static_cast<Callbacks*>(self)->ReadSome(reader, buffer);
  }

  static la_int64_t Skip(archive* reader, void* self, la_int64_t count) {
    return static_cast<Callbacks*>(self)->SkipSome(reader, count);
  }

  void Rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  la_ssize_t ReadSome(archive* reader, const void** buffer) {
    try {
      const Bytes piece = bytes_.Next(std::size_t{1} << 20);
      *buffer = piece.data();
      return static_cast<la_ssize_t>(piece.size());
    } catch (...) {
      return Keep(reader);
    }
  }

  la_int64_t SkipSome(archive* reader, la_int64_t count) {
    try {
      return count <= 0 ? 0 : static_cast<la_int64_t>(bytes_.Skip(static_cast<std::uint64_t>(count)));
    } catch (...) {
      return Keep(reader);
    }
  }

  int Keep(archive* reader) {
    thrown_ = std::current_exception();
    archive_set_error(reader, EIO, "reading failed");
    return ARCHIVE_FATAL;
  }

  ForwardBytes& bytes_;
  std::exception_ptr thrown_;
};

class TarReader::MemberBytes : public ForwardBytes {
 public:
  explicit MemberBytes(TarReader& reader) : reader_(reader) {}

  Bytes Next(std::size_t most) override {
    if (piece_.empty()) Fetch();
    const Bytes part = piece_.first(std::min(most, piece_.size()));
    piece_ = piece_.subspan(part.size());
    return part;
  }
  // libarchive passes over content only as a whole.
  std::uint64_t Skip(std::uint64_t) override { return 0; }

 private:
  void Fetch() {
    const void* data = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int result = archive_read_data_block(reader_.archive_.get(), &data, &size, &offset);
    reader_.callbacks_->Rethrow();
    if (result == ARCHIVE_EOF) return;
    if (result != ARCHIVE_OK) reader_.CheckHeader(result);
    piece_ = {static_cast<const std::byte*>(data), size};
  }

  TarReader& reader_;
  Bytes piece_;
};

TarReader::TarReader(ForwardBytes& bytes, std::string name)
    : name_(std::move(name)),
      callbacks_(std::make_unique<Callbacks>(bytes)),
      archive_(archive_read_new(), archive_read_free) {
  if (!archive_) throw std::bad_alloc();
  // libarchive reads names in the charset of the thread's locale. Under C it leaves them alone, and warns of a pax name
  // that is not ASCII; under a UTF-8 locale it would compose letters and accents, which makes another name of it.
  const CLocale c_locale;
  archive* const reader = archive_.get();
  archive_read_support_format_tar(reader);
  archive_read_support_format_empty(reader);
  archive_read_set_read_callback(reader, Callbacks::Read);
  archive_read_set_skip_callback(reader, Callbacks::Skip);
  archive_read_set_callback_data(reader, callbacks_.get());
  const int result = archive_read_open1(reader);
  callbacks_->Rethrow();
  if (result != ARCHIVE_OK) Fail("is not a tar");
}

TarReader::~TarReader() = default;

bool TarReader::Next() {
  const CLocale c_locale;
  content_.reset();
  archive* const reader = archive_.get();
  for (;;) {
    const int result = archive_read_next_header(reader, &entry_);
    callbacks_->Rethrow();
    if (result == ARCHIVE_EOF) {
      const auto end = static_cast<std::uint64_t>(std::max<la_int64_t>(archive_filter_bytes(reader, 0), 0));
      if (end < end_of_last_ + kBlock) Fail("is cut off: it has no end marker");
      return false;
    }
    CheckHeader(result);
    const la_int64_t size = archive_entry_size_is_set(entry_) ? archive_entry_size(entry_) : 0;
    const la_int64_t offset = archive_filter_bytes(reader, 0);
    if (size < 0 || offset < 0 || size > std::numeric_limits<la_int64_t>::max() / 2)
      Fail("has a member without a size");
    data_offset_ = static_cast<std::uint64_t>(offset);
    const bool is_file = archive_entry_filetype(entry_) == AE_IFREG && archive_entry_hardlink(entry_) == nullptr;
    size_ = static_cast<std::uint64_t>(size);
    end_of_last_ = data_offset_ + RoundedUp(size_);
    const char* path = archive_entry_pathname(entry_);
    if (path == nullptr) Fail("has a member without a name");
    path_ = path;
    if (is_file && archive_entry_sparse_reset(entry_) > 0) Fail("the member " + Escaped(path_) + " is a sparse file");
    if (is_file) return true;
    if (archive_entry_filetype(entry_) != AE_IFDIR) ++others_;
    // A link or folder has no content, whatever its header says.
    end_of_last_ = data_offset_;
  }
}

// A warning is given where a name is not ASCII, and then it is as it stands in the tar.
void TarReader::CheckHeader(int result) {
  if (result == ARCHIVE_OK) return;
  const char* text = archive_error_string(archive_.get());
  const std::string reason = text != nullptr ? text : "no reason is known";
  if (result == ARCHIVE_WARN && reason.find("can't be converted") != std::string::npos) return;
  if (archive_errno(archive_.get()) == ENOMEM) throw std::bad_alloc();
  std::string what = reason.find("runcated") != std::string::npos ? "is cut off" : "is damaged";
  if (!path_.empty()) what += " behind the member " + Escaped(path_);
  Fail(what + ": " + Escaped(reason));
}

void TarReader::Read(std::byte* to, std::uint64_t size) {
  if (Content().Read(to, size) != size) Fail("is cut off in the member " + Escaped(path_));
}

ForwardBytes& TarReader::Content() {
  if (!content_) content_ = std::make_unique<MemberBytes>(*this);
  return *content_;
}

void TarReader::Fail(const std::string& reason) const {
  throw Error(ErrorCode::kBadInput, Location{name_, {}, {}}, reason);
}

}  // namespace shardpack
