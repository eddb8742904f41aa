#include "tools/common/table.h"

#include <algorithm>
#include <cassert>

namespace shardpack::tools {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no place.
std::size_t Width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

void Table::Add(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    titles.push_back(columns_[c].title);
    widths.push_back(Width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], Width(row[c]));
  }
  std::string text;
  const auto put = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string blanks(widths[c] - Width(cells[c]), ' ');
      line += "  ";
      line += columns_[c].align == Align::kRight ? blanks + cells[c] : cells[c] + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  put(titles);
  for (const auto& row : rows_) put(row);
  return text;
}

}  // namespace shardpack::tools
