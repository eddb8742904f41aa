#include "libshard/pack/csv_reader.h"

#include <csv.h>

#include <cstring>
#include <new>

#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::string_view kBom = "\xef\xbb\xbf";
constexpr std::size_t kPieceBytes = 256 << 10;

int NoSpace(unsigned char) { return 0; }

}  // namespace

void CheckIsNotUtf16(std::string_view head, const std::string& path) {
  if (!head.starts_with("\xff\xfe") && !head.starts_with("\xfe\xff")) return;
  throw Error(ErrorCode::kBadInput, Location{path, {}, {}}, "line 1: is UTF-16; lists are UTF-8");
}

CsvReader::CsvReader(const ArchiveFile& file)
    : path_(file.path().native()),
      bytes_(ForwardBytes::Open(file, Wrapping::kPlain)),
      parser_(std::make_unique<csv_parser>()) {
  const std::string head = file.Head(kBom.size());
  CheckIsNotUtf16(head, path_);
  if (head == kBom) bytes_->PassOver(kBom.size());
  if (csv_init(parser_.get(), CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
  csv_set_space_func(parser_.get(), NoSpace);
}

CsvReader::~CsvReader() { csv_free(parser_.get()); }

void CsvReader::Fail(std::uint64_t line, const std::string& reason) const {
  throw Error(ErrorCode::kBadInput, Location{path_, {}, {}}, "line " + std::to_string(line) + ": " + reason);
}

void CsvReader::OnField(void* text, std::size_t size, void* self) {
  auto* const reader = static_cast<CsvReader*>(self);
  if (reader->is_complete_) return;
  try {
    if (size > 0) reader->row_->text.append(static_cast<const char*>(text), size);
    reader->row_->ends.push_back(reader->row_->text.size());
  } catch (const std::bad_alloc&) {
    reader->out_of_memory_ = true;  // nothing may be thrown through C
  }
}

void CsvReader::OnRow(int, void* self) { static_cast<CsvReader*>(self)->is_complete_ = true; }

// The rest of a line with its end, or as much of it as is there. Empty at the end of the file.
std::string_view CsvReader::NextPiece() {
  if (rest_.empty()) rest_ = AsText(bytes_->Next(kPieceBytes));
  if (after_cr_ && rest_.starts_with('\n')) {
    const std::string_view end = rest_.substr(0, 1);
    rest_.remove_prefix(1);
    return end;
  }
  std::size_t size = rest_.find_first_of("\r\n");
  size = size == std::string_view::npos ? rest_.size() : size + 1;
  const std::string_view piece = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return piece;
}

void CsvReader::CountLine(std::string_view piece) {
  const char last = piece.back();
  if (last == '\r' || (last == '\n' && !(after_cr_ && piece.size() == 1))) ++line_;
  after_cr_ = last == '\r';
}

void CsvReader::Feed(std::string_view piece) {
  if (std::memchr(piece.data(), 0, piece.size()) != nullptr) Fail(line_, "holds a NUL: this is no CSV");
  fed_ += piece.size();
  if (fed_ > kLargestListRow) {
    Fail(row_->line, "a record of more than 64 MiB begins here: is a quote in it never closed?");
  }
  if (csv_parse(parser_.get(), piece.data(), piece.size(), OnField, OnRow, this) != piece.size()) {
    if (csv_error(parser_.get()) != CSV_EPARSE) throw std::bad_alloc();
    Fail(line_,
         "a quote where none may be: a field with quotes stands in quotes itself, and those within it are doubled");
  }
  if (out_of_memory_) throw std::bad_alloc();
}

bool CsvReader::Next(ListRow& row) {
  row.text.clear();
  row.ends.clear();
  row_ = &row;
  is_complete_ = in_row_ = false;
  fed_ = 0;
  for (std::string_view piece = NextPiece(); !piece.empty(); piece = NextPiece()) {
    const bool is_blank = piece == "\n" || piece == "\r";
    if (!in_row_ && !is_blank) {
      row.line = line_;
      in_row_ = true;
    }
    if (in_row_) Feed(piece);
    CountLine(piece);
    if (is_complete_) return true;
  }
  if (csv_fini(parser_.get(), OnField, OnRow, this) != 0) {
    if (csv_error(parser_.get()) != CSV_EPARSE) throw std::bad_alloc();
    Fail(row.line, "a quote in the record that begins here is never closed");
  }
  if (out_of_memory_) throw std::bad_alloc();
  return is_complete_;
}

}  // namespace shardpack
