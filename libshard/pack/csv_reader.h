// Records of a CSV file, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/pack/forward_bytes.h"

struct csv_parser;

namespace shardpack {

// The fields of one record, or one line of another list (then there is one).
struct ListRow {
  std::uint64_t line = 0;  // where it begins, from 1
  std::string text;        // the fields' bytes, without anything between them
  std::vector<std::size_t> ends;

  std::size_t num_fields() const { return ends.size(); }
  std::string_view field(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(begin, ends[i] - begin);
  }
};

// RFC 4180: fields may be quoted, and then hold commas, line ends and doubled quotes. Lines end with LF, CR LF or CR;
// blank ones are passed over, as is a byte-order mark. White space belongs to its field. Parses by libcsv, which is fed
// line by line so that every record and every error has its number. Not thread-safe.
class CsvReader {
 public:
  // Throws Error with kBadInput (UTF-16) or as ForwardBytes does.
  explicit CsvReader(const ArchiveFile& file);
  ~CsvReader();
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  // False behind the last. Throws Error with kBadInput, naming file and line: a NUL, a quote inside of a field that is
  // not quoted, text behind a closing quote, a quote that is never closed, a record of more than 64 MiB.
  bool Next(ListRow& row);

 private:
  std::string_view NextPiece();
  void Feed(std::string_view piece);
  void CountLine(std::string_view piece);
  [[noreturn]] void Fail(std::uint64_t line, const std::string& reason) const;
  static void OnField(void* text, std::size_t size, void* self);
  static void OnRow(int end, void* self);

  std::string path_;
  std::unique_ptr<ForwardBytes> bytes_;
  std::unique_ptr<csv_parser> parser_;
  std::string_view rest_;
  std::uint64_t line_ = 1;
  bool after_cr_ = false;     // the line that ended last did so by CR: an LF that follows is of the same end
  bool in_row_ = false;       // part of a record was fed
  bool is_complete_ = false;  // by what was fed last
  bool out_of_memory_ = false;
  std::uint64_t fed_ = 0;  // bytes of this record
  ListRow* row_ = nullptr;
};

// The start of a text list, told apart from what no list can be. Throws Error with kBadInput: UTF-16.
void CheckIsNotUtf16(std::string_view head, const std::string& path);

inline constexpr std::uint64_t kLargestListRow = 64 << 20;

}  // namespace shardpack
