// Columns that line up.
#pragma once

#include <string>
#include <vector>

namespace shardpack::tools {

enum class Align { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Precondition: as many cells as columns. Cells are UTF-8 and hold no control characters.
  void Add(std::vector<std::string> cells);
  // Indented by two blanks, titles first, no blanks at the ends of lines.
  std::string Text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace shardpack::tools
