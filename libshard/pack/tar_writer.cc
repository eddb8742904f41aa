#include "libshard/pack/tar_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <locale.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr int kWriteBytes = 1 << 20;

// libarchive reads names in the charset of the thread's locale. Under this one it keeps UTF-8 as it is and marks any
// other name as binary, whatever the user's locale; a program in the C locale would have all non-ASCII names marked.
class Utf8Locale {
 public:
  Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ != nullptr) before_ = uselocale(locale_);
  }
  ~Utf8Locale() {
    if (locale_ == nullptr) return;
    uselocale(before_);
    freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t locale_;
  locale_t before_ = nullptr;
};

}  // namespace

TarWriter::TarWriter(const std::filesystem::path& path)
    : path_(path),
      file_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)),
      archive_(archive_write_new(), archive_write_free),
      entry_(archive_entry_new(), archive_entry_free) {
  if (!file_ && errno == EEXIST) {
    throw Error(ErrorCode::kInvalidArgument,
                "the output " + Escaped(path.native()) + " exists: nothing is overwritten; name another file");
  }
  if (!file_) ThrowSystemError(errno, "create", path.native());
  try {
    if (!archive_ || !entry_) throw std::bad_alloc();
    Check(archive_write_set_format_pax_restricted(archive_.get()));
    Check(archive_write_add_filter_none(archive_.get()));
    Check(archive_write_set_bytes_per_block(archive_.get(), kWriteBytes));
    Check(archive_write_set_bytes_in_last_block(archive_.get(), 1));
    Check(archive_write_open_fd(archive_.get(), file_.get()));
  } catch (...) {
    unlink(path_.c_str());
    throw;
  }
}

TarWriter::~TarWriter() {
  // What is freed unfinished must not be flushed to a disk that may be full.
  if (!finished_ && archive_) archive_write_fail(archive_.get());
  if (!finished_) unlink(path_.c_str());
}

void TarWriter::Add(std::string_view name, Bytes content) {
  const Utf8Locale utf8;
  archive_entry_clear(entry_.get());
  archive_entry_copy_pathname(entry_.get(), std::string(name).c_str());
  archive_entry_set_filetype(entry_.get(), AE_IFREG);
  archive_entry_set_perm(entry_.get(), 0644);
  archive_entry_set_uid(entry_.get(), 0);
  archive_entry_set_gid(entry_.get(), 0);
  archive_entry_set_mtime(entry_.get(), 0, 0);
  archive_entry_set_size(entry_.get(), static_cast<la_int64_t>(content.size()));
  // A warning: the name is not UTF-8, and was written as it is and marked so.
  const int header = archive_write_header(archive_.get(), entry_.get());
  if (header != ARCHIVE_WARN) Check(header);
  Check(archive_write_data(archive_.get(), content.data(), content.size()));
}

void TarWriter::Finish() {
  Check(archive_write_close(archive_.get()));
  if (fsync(file_.get()) != 0 && errno != EINVAL && errno != ENOTSUP) ThrowSystemError(errno, "sync", path_.native());
  finished_ = true;
}

void TarWriter::Check(long long result) const {
  if (result >= ARCHIVE_OK) return;
  const int error = archive_errno(archive_.get());
  if (error == ENOMEM) throw std::bad_alloc();
  // libarchive's own numbers lie above or below those of the system.
  if (error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO || error == EROFS)
    ThrowSystemError(error, "write", path_.native());
  const char* reason = archive_error_string(archive_.get());
  throw Error(ErrorCode::kIo, Location{path_.native(), std::nullopt, std::nullopt},
              "cannot write the archive: " + Escaped(reason != nullptr ? reason : "no reason is known"));
}

}  // namespace shardpack
