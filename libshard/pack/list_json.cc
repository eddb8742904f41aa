// JSON lines: an object a line.
#include "libshard/pack/json_object.h"
#include "libshard/pack/list_format.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;

class JsonList : public ListFormat {
 public:
  JsonList(const ArchiveFile& file, const PackOptions& options)
      : path_(file.path().native()),
        path_member_(options.path_column),
        label_member_(options.label_column),
        bytes_(ForwardBytes::Open(file, Wrapping::kPlain)) {
    CheckIsNotUtf16(file.Head(2), path_);
  }

  bool Next(ListRow& row) override;
  ListEntry Parse(const ListRow& row) const override;
  std::string Advice() const override { return "; a fractional label that is whole is written as 2.0"; }

 private:
  bool TakeLine(std::string& line);
  void CheckHasRoom(const ListEntry& entry) const;

  const std::string path_, path_member_, label_member_;
  std::unique_ptr<ForwardBytes> bytes_;
  std::string_view rest_;
  std::uint64_t line_ = 0;
};

// False at the end.
bool JsonList::TakeLine(std::string& line) {
  line.clear();
  ++line_;
  for (;;) {
    if (rest_.empty()) rest_ = AsText(bytes_->Next(kPieceBytes));
    if (rest_.empty()) return !line.empty();
    const std::size_t end = rest_.find('\n');
    line += rest_.substr(0, end);
    if (line.size() > kLargestListRow) {
      throw Error(ErrorCode::kBadInput, Location{path_, {}, {}},
                  "line " + std::to_string(line_) + ": has more than 64 MiB");
    }
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (end != std::string_view::npos) return true;
  }
}

bool JsonList::Next(ListRow& row) {
  while (TakeLine(row.text)) {
    const std::string_view text = line_ == 1 && row.text.starts_with("\xef\xbb\xbf")
                                      ? std::string_view(row.text).substr(3)
                                      : std::string_view(row.text);
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    row.line = line_;
    row.ends.assign(1, row.text.size());
    return true;
  }
  return false;
}

// Labels that stand in the metadata take the name "label" there.
void JsonList::CheckHasRoom(const ListEntry& entry) const {
  if (entry.label.kind != LabelKind::kList && entry.label.kind != LabelKind::kFloat) return;
  if (label_member_ == "label") return;
  constexpr std::string_view kName[] = {"label"};
  std::optional<std::string> value[1];
  TakeMembers(entry.metadata, kName, value);
  if (!value[0]) return;
  throw Error(ErrorCode::kBadInput,
              "the member \"label\" cannot be kept: labels that are lists or fractions take its name in the metadata");
}

ListEntry JsonList::Parse(const ListRow& row) const {
  const std::string_view names[] = {path_member_, label_member_};
  std::optional<std::string> values[2];
  ListEntry entry;
  entry.metadata = TakeMembers(row.text, names, values);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!values[i]) throw Error(ErrorCode::kBadInput, "has no member \"" + Escaped(names[i]) + "\"");
  }
  if (!values[0]->starts_with('"')) {
    throw Error(ErrorCode::kBadInput, "the member \"" + Escaped(path_member_) + "\" is not a string");
  }
  entry.path = TextOfJsonString(*values[0]);
  entry.label = LabelOfJson(*values[1]);
  CheckHasRoom(entry);
  if (entry.metadata == "{}") entry.metadata.clear();
  return entry;
}

}  // namespace

std::unique_ptr<ListFormat> OpenJsonList(const ArchiveFile& file, const PackOptions& options) {
  return std::make_unique<JsonList>(file, options);
}

}  // namespace shardpack
