// Lists of files: CSV and JSON lines.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <mutex>

#include "libshard/pack/file_reading.h"
#include "libshard/pack/list_format.h"
#include "libshard/pack/source.h"
#include "libshard/pack/task_arena.h"
#include "libshard/store/unique_fd.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr char kMissing[] = "no such file";
// Rows that are read before they are parsed and their files looked at, in parallel.
constexpr std::size_t kRowsAtOnce = 8192, kBytesAtOnce = 8 << 20, kGrain = 128;

// Of the errors of rows that were worked on side by side, the one of the first row: which it is must not depend on
// threads.
class FirstError {
 public:
  void Note(std::uint64_t row, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_ && row_ <= row) return;
    row_ = row;
    error_ = std::move(error);
  }
  // Precondition for both: no thread notes any more.
  std::uint64_t row() const { return row_; }
  std::exception_ptr error() const { return error_; }

 private:
  std::mutex mutex_;
  std::uint64_t row_ = 0;
  std::exception_ptr error_;
};

bool IsOutside(std::string_view path) {
  if (path.starts_with('/')) return true;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

class ListScan {
 public:
  ListScan(const std::string& path, int folder, ListFormat& format, const std::atomic<bool>* stop, InputSink& sink)
      : path_(path), folder_(folder), format_(format), stop_(stop), sink_(sink) {}

  void Run();

 private:
  bool ReadRows();
  void ParseRows();
  void CheckRows();
  void Check(const ListRow& row, const ListEntry& entry);
  void Add(const ListRow& row, const ListEntry& entry) const;
  template <typename Body>
  void ForEachRow(const Body& body);
  void EndBefore(std::size_t row, std::exception_ptr error) {
    num_rows_ = row;
    end_ = std::move(error);
  }
  [[noreturn]] void Fail(const ListRow& row, const std::string& reason) const {
    throw Error(ErrorCode::kBadInput, Location{path_, {}, {}}, "line " + std::to_string(row.line) + ": " + reason);
  }

  const std::string& path_;
  const int folder_;
  ListFormat& format_;
  const std::atomic<bool>* stop_;
  InputSink& sink_;
  std::vector<ListRow> rows_{kRowsAtOnce};
  std::vector<ListEntry> entries_{kRowsAtOnce};
  std::size_t num_rows_ = 0;
  std::exception_ptr end_;  // what the row behind these threw: only they are worked on, then it is thrown
  std::uint64_t first_line_ = 0;
  LabelKind kind_ = LabelKind::kClass;  // of the first line
  std::uint64_t leaving_ = 0;
  std::string first_leaving_;
};

// False where there are none any more.
bool ListScan::ReadRows() {
  std::size_t bytes = 0;
  num_rows_ = 0;
  try {
    while (num_rows_ < kRowsAtOnce && bytes < kBytesAtOnce && format_.Next(rows_[num_rows_])) {
      bytes += rows_[num_rows_++].text.size();
    }
  } catch (const Error&) {
    end_ = std::current_exception();  // an error of a row before it goes first
  }
  return num_rows_ > 0;
}

// In parallel. The rows from the first one on that `body` throws for are left out of what follows.
template <typename Body>
void ListScan::ForEachRow(const Body& body) {
  if (stop_ != nullptr && *stop_) throw Interrupted{};
  FirstError first;
  ParallelFor(0, num_rows_, kGrain, [&](std::uint64_t i) {
    try {
      body(rows_[i], entries_[i]);
    } catch (const Error&) {
      first.Note(i, std::current_exception());
    }
  });
  if (first.error()) EndBefore(first.row(), first.error());
}

void ListScan::ParseRows() {
  ForEachRow([&](const ListRow& row, ListEntry& entry) {
    try {
      entry = format_.Parse(row);
    } catch (const Error& e) {
      Fail(row, e.reason());
    }
  });
}

void ListScan::CheckRows() {
  for (std::size_t i = 0; i < num_rows_; ++i) {
    try {
      Check(rows_[i], entries_[i]);
    } catch (const Error&) {
      EndBefore(i, std::current_exception());
    }
  }
}

void ListScan::Check(const ListRow& row, const ListEntry& entry) {
  if (entry.path.empty()) Fail(row, "the path is empty");
  if (entry.path.find('\0') != std::string::npos) Fail(row, "the path holds a NUL");
  if (first_line_ == 0) {
    first_line_ = row.line;
    kind_ = entry.label.kind;
  }
  if (entry.label.kind != kind_) {
    Fail(row, "labels of different kinds: " + std::string(KindInWords(entry.label.kind)) + " here, " +
                  std::string(KindInWords(kind_)) + " in line " + std::to_string(first_line_) + format_.Advice());
  }
  if (IsOutside(entry.path) && leaving_++ == 0) first_leaving_ = entry.path;
}

void ListScan::Add(const ListRow& row, const ListEntry& entry) const {
  FileLook look;
  try {
    look = LookAtFile(folder_, entry.path.c_str(), kMissing);
  } catch (const OutOfResources& lack) {
    ThrowSystemError(lack.error, lack.doing, entry.path);
  }
  FoundInput found;
  found.key = entry.path;
  found.size = look.size;
  found.sequence = row.line;
  found.label = entry.label.view();
  found.metadata = entry.metadata;
  found.bad = look.bad;
  found.bad_code = look.bad_code;
  sink_.Add(found);
}

void ListScan::Run() {
  while (ReadRows()) {
    ParseRows();
    CheckRows();
    ForEachRow([&](const ListRow& row, ListEntry& entry) { Add(row, entry); });
    if (end_) break;
  }
  if (end_) std::rethrow_exception(end_);
  if (leaving_ == 0) return;
  sink_.Warn(Escaped(path_) + ": " + std::to_string(leaving_) + (leaving_ == 1 ? " path leaves" : " paths leave") +
             " the folder of the list (" + Escaped(first_leaving_) + (leaving_ > 1 ? ", ...)" : ")") +
             ": packed under " + (leaving_ == 1 ? "this key" : "such keys") +
             ", which extract will refuse to write to");
}

class ListSource : public Source {
 public:
  ListSource(const std::filesystem::path& path, SourceKind kind, const PackOptions& options)
      : file_(path), path_(path.native()), kind_(kind) {
    options_.path_column = options.path_column;
    options_.label_column = options.label_column;
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    folder_ = UniqueFd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder_) ThrowSystemError(errno, "open folder", folder.native());
  }

  SourceKind kind() const override { return kind_; }
  bool IsStream() const override { return false; }
  void Scan(const std::atomic<bool>* stop, InputSink& sink) override {
    const auto format =
        kind_ == SourceKind::kCsv ? OpenCsvList(file_, options_, stop, sink) : OpenJsonList(file_, options_);
    ListScan(path_, folder_.get(), *format, stop, sink).Run();
  }
  void Read(const PlannedInput& input, std::byte* to) override {
    ReadWholeFile(folder_.get(), std::string(input.SourceKey()).c_str(), input.size, to);
  }
  bool IsAsPlanned(const PlannedInput& input) override {
    return LooksAsPlanned(folder_.get(), std::string(input.SourceKey()).c_str(), kMissing, input);
  }
  std::string Describe(const PlannedInput& input) const override {
    return path_ + ": line " + std::to_string(input.sequence) + ": " + std::string(input.SourceKey());
  }

 private:
  const ArchiveFile file_;
  const std::string path_;
  const SourceKind kind_;
  PackOptions options_;  // the columns
  UniqueFd folder_;
};

}  // namespace

std::unique_ptr<Source> OpenListSource(const std::filesystem::path& path, SourceKind kind, const PackOptions& options) {
  return std::make_unique<ListSource>(path, kind, options);
}

}  // namespace shardpack
