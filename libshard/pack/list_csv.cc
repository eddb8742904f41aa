// CSV lists: a header row that names the columns, then a file a row.
#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "libshard/pack/json_object.h"
#include "libshard/pack/json_text.h"
#include "libshard/pack/list_format.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kLookEvery = 1024;  // rows between two looks at `stop`

// What the text of a label alone may be.
enum class Cell { kWhole, kLargeWhole, kDecimal, kList, kName, kEmpty };
constexpr std::size_t kNumCells = 6;

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Cell CellOf(std::string_view cell) {
  std::string_view text = Trimmed(cell);
  if (text.empty()) return Cell::kEmpty;
  if (text[0] == '[') return nlohmann::json::accept(text) ? Cell::kList : Cell::kName;
  // from_chars alone would take "nan" and "infinity", which may well name a class.
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return Cell::kName;
  if (text[0] == '+' && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  std::int64_t whole;
  const auto as_whole = std::from_chars(text.data(), end, whole);
  if (as_whole.ptr == end) return as_whole.ec == std::errc() ? Cell::kWhole : Cell::kLargeWhole;
  double number;
  const auto as_decimal = std::from_chars(text.data(), end, number);
  return as_decimal.ec != std::errc::invalid_argument && as_decimal.ptr == end ? Cell::kDecimal : Cell::kName;
}

// The first line of each kind of label; 0: none has it.
class SeenLabels {
 public:
  void Add(std::string_view cell, std::uint64_t line) {
    const Cell kind = CellOf(cell);
    std::uint64_t& first = Line(kind);
    if (first != 0) return;
    first = line;
    if (kind == Cell::kName) first_name_ = cell.substr(0, kShown);
  }

  // Throws Error with kBadInput, naming the line, where they are not of one kind.
  LabelKind Kind(const std::string& path, InputSink& sink) const;

 private:
  static constexpr std::size_t kShown = 40;

  std::uint64_t& Line(Cell kind) { return lines_[static_cast<std::size_t>(kind)]; }
  std::uint64_t Line(Cell kind) const { return lines_[static_cast<std::size_t>(kind)]; }
  std::uint64_t FirstOther() const;  // than a list

  std::array<std::uint64_t, kNumCells> lines_{};
  std::string first_name_;
};

std::uint64_t SeenLabels::FirstOther() const {
  std::uint64_t first = 0;
  for (const Cell kind : {Cell::kWhole, Cell::kLargeWhole, Cell::kDecimal, Cell::kName}) {
    if (Line(kind) != 0 && (first == 0 || Line(kind) < first)) first = Line(kind);
  }
  return first;
}

LabelKind SeenLabels::Kind(const std::string& path, InputSink& sink) const {
  const auto fail = [&](std::uint64_t line, const std::string& reason) {
    throw Error(ErrorCode::kBadInput, Location{path, {}, {}}, "line " + std::to_string(line) + ": " + reason);
  };
  if (Line(Cell::kEmpty) != 0) fail(Line(Cell::kEmpty), "the label is empty");
  if (Line(Cell::kList) != 0) {
    const std::uint64_t other = FirstOther();
    if (other != 0) {
      fail(std::max(other, Line(Cell::kList)), "labels of different kinds: a list in one line, in another none");
    }
    return LabelKind::kList;
  }
  if (Line(Cell::kName) != 0) {
    if (Line(Cell::kWhole) != 0 || Line(Cell::kDecimal) != 0) {
      sink.Warn(Escaped(path) + ": its labels are taken as class names, numbers too, since line " +
                std::to_string(Line(Cell::kName)) + " has the label " + Escaped(first_name_));
    }
    return LabelKind::kClass;
  }
  if (Line(Cell::kLargeWhole) != 0) fail(Line(Cell::kLargeWhole), "the label does not fit into 64 bits");
  return Line(Cell::kDecimal) != 0 ? LabelKind::kFloat : LabelKind::kInteger;
}

class CsvList : public ListFormat {
 public:
  CsvList(const ArchiveFile& file, const PackOptions& options) : path_(file.path().native()), reader_(file) {
    ReadHeader(options);
  }

  void LookAtLabels(const std::atomic<bool>* stop, SeenLabels& seen);
  void SetKind(LabelKind kind);

  bool Next(ListRow& row) override;
  ListEntry Parse(const ListRow& row) const override;
  std::string Advice() const override { return {}; }

 private:
  void ReadHeader(const PackOptions& options);
  std::size_t Find(const ListRow& header, const std::string& name, const char* option) const;
  void NameColumns(const ListRow& header);
  OwnedLabel LabelOf(std::string_view cell) const;
  [[noreturn]] void Fail(ErrorCode code, std::uint64_t line, const std::string& reason) const {
    throw Error(code, Location{path_, {}, {}}, "line " + std::to_string(line) + ": " + reason);
  }

  const std::string path_;
  CsvReader reader_;
  std::uint64_t header_line_ = 1;
  std::size_t path_column_ = 0, label_column_ = 0;
  std::vector<std::string> names_;  // of all columns
  LabelKind kind_ = LabelKind::kClass;
};

std::string Listed(const ListRow& header) {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(header.num_fields(), kMost); ++i) {
    text += (i == 0 ? "\"" : ", \"") + Escaped(header.field(i).substr(0, 64)) + '"';
  }
  return text + (header.num_fields() > kMost ? ", ..." : "");
}

std::size_t CsvList::Find(const ListRow& header, const std::string& name, const char* option) const {
  for (std::size_t i = 0; i < header.num_fields(); ++i) {
    if (header.field(i) == name) return i;
  }
  Fail(ErrorCode::kInvalidArgument, header_line_,
       "no column \"" + Escaped(name) + "\": the header has " + Listed(header) + "; " + option + " names another");
}

void CsvList::NameColumns(const ListRow& header) {
  for (std::size_t i = 0; i < header.num_fields(); ++i) {
    const std::string_view name = header.field(i);
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
      Fail(ErrorCode::kBadInput, header_line_, "two columns are called \"" + Escaped(name) + '"');
    }
    names_.emplace_back(name);
  }
}

void CsvList::ReadHeader(const PackOptions& options) {
  ListRow header;
  if (!reader_.Next(header)) Fail(ErrorCode::kBadInput, 1, "no header: the first row of a CSV names its columns");
  header_line_ = header.line;
  path_column_ = Find(header, options.path_column, "--path-column");
  label_column_ = Find(header, options.label_column, "--label-column");
  if (path_column_ == label_column_) {
    throw Error(ErrorCode::kInvalidArgument, "--path-column and --label-column name the same column");
  }
  NameColumns(header);
}

bool CsvList::Next(ListRow& row) {
  if (!reader_.Next(row)) return false;
  if (row.num_fields() != names_.size()) {
    Fail(ErrorCode::kBadInput, row.line,
         "has " + std::to_string(row.num_fields()) + " fields, and the header has " + std::to_string(names_.size()));
  }
  return true;
}

void CsvList::LookAtLabels(const std::atomic<bool>* stop, SeenLabels& seen) {
  ListRow row;
  for (std::uint64_t count = 0; Next(row); ++count) {
    if (count % kLookEvery == 0 && stop != nullptr && *stop) throw Interrupted{};
    seen.Add(row.field(label_column_), row.line);
  }
}

void CsvList::SetKind(LabelKind kind) {
  kind_ = kind;
  if (kind != LabelKind::kList && kind != LabelKind::kFloat) return;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (i == path_column_ || i == label_column_ || names_[i] != "label") continue;
    Fail(ErrorCode::kInvalidArgument, header_line_,
         "the column \"label\" cannot be kept: labels that are lists or fractions take its name in the metadata");
  }
}

OwnedLabel CsvList::LabelOf(std::string_view cell) const {
  if (kind_ == LabelKind::kClass) {
    if (cell.empty()) throw Error(ErrorCode::kBadInput, "the label is empty");
    return {LabelKind::kClass, 0, std::string(cell)};
  }
  if (kind_ == LabelKind::kList) {
    constexpr std::string_view kName[] = {"label"};
    std::optional<std::string> value[1];
    TakeMembers("{\"label\":" + std::string(cell) + '}', kName, value);  // without its white space
    return LabelOfJson(value[0].value_or("null"));
  }
  OwnedLabel label = LabelOfText(cell);
  if (kind_ == LabelKind::kInteger || label.kind != LabelKind::kInteger) return label;
  const auto number = static_cast<double>(label.number);
  // Compared as the integers that doubles this large are; 2^63 itself would not fit.
  if (number >= 0x1p63 || static_cast<std::int64_t>(number) != label.number) {
    throw Error(ErrorCode::kBadInput, "the label " + std::string(Trimmed(cell)) +
                                          " is no double, which it would have to be among fractional labels");
  }
  return FloatLabel(number);
}

ListEntry CsvList::Parse(const ListRow& row) const {
  ListEntry entry;
  entry.path = row.field(path_column_);
  entry.label = LabelOf(row.field(label_column_));
  if (names_.size() == 2) return entry;
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (i == path_column_ || i == label_column_) continue;
    PutBytes(object, IsUtf8(names_[i]) ? names_[i] : "column " + std::to_string(i + 1), row.field(i));
  }
  entry.metadata = object.dump();
  return entry;
}

}  // namespace

std::unique_ptr<ListFormat> OpenCsvList(const ArchiveFile& file, const PackOptions& options,
                                        const std::atomic<bool>* stop, InputSink& sink) {
  SeenLabels seen;
  CsvList(file, options).LookAtLabels(stop, seen);
  auto list = std::make_unique<CsvList>(file, options);
  list->SetKind(seen.Kind(file.path().native(), sink));
  return list;
}

}  // namespace shardpack
