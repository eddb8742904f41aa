#include "shardpack/resize.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "libshard/image/resize_kernels.h"

namespace shardpack {
namespace {

using image::PairedWeights;
using image::ResizeColumns;
using image::ResizeRow;
using image::ResizeTable;

// One axis of a resize: its table, kept as long as the same one is asked for.
struct Axis {
  std::uint32_t in_size = 0, out_size = 0, first = 0, count = 0;
  ResizeTable table;
  PairedWeights weights;

  void Prepare(std::uint32_t in, std::uint32_t out, std::uint32_t window_first, std::uint32_t window_count) {
    if (in == in_size && out == out_size && window_first == first && window_count == count) return;
    FillResizeTable(in, out, window_first, window_count, 2, table);
    PairWeights(table, weights);
    in_size = in, out_size = out, first = window_first, count = window_count;
  }
  bool Copies() const { return in_size == out_size; }
  std::uint32_t FirstSource() const { return table.spans.front().start; }
  std::uint32_t EndSource() const { return table.spans.back().start + table.spans.back().count; }
};

void CopyRows(const std::uint8_t* from, std::size_t from_stride, std::size_t row_bytes, std::size_t rows,
              std::uint8_t* to) {
  for (std::size_t y = 0; y < rows; ++y) std::memcpy(to + y * row_bytes, from + y * from_stride, row_bytes);
}

}  // namespace

struct Resizer::Impl {
  Axis columns, rows;
  std::vector<std::uint8_t> narrowed;    // rows after the horizontal pass
  std::vector<std::uint8_t> padded_row;  // a copy of a source row that the kernel may read past the end of

  PixelView Narrow(PixelView source, std::uint32_t first_row, std::uint32_t end_row);
  void Widen(PixelView narrow, std::uint32_t first_row, std::uint8_t* out) const;
};

// The horizontal pass over the rows that the vertical one will want.
PixelView Resizer::Impl::Narrow(PixelView source, std::uint32_t first_row, std::uint32_t end_row) {
  std::size_t row_bytes = std::size_t{source.width} * 3;
  std::size_t stride = std::size_t{columns.count} * 3;
  std::size_t rows_needed = end_row - first_row;
  narrowed.resize(std::max(narrowed.size(), stride * rows_needed + image::kRowWriteSlack));
  padded_row.resize(std::max(padded_row.size(), row_bytes + image::kRowReadSlack));
  const std::uint8_t* source_end = source.data + (source.height - 1) * source.stride_bytes + row_bytes;
  std::uint8_t* out = narrowed.data();
  for (std::uint32_t y = first_row; y < end_row; ++y, out += stride) {
    const std::uint8_t* row = source.data + y * source.stride_bytes;
    if (static_cast<std::size_t>(source_end - row) < row_bytes + image::kRowReadSlack) {
      std::memcpy(padded_row.data(), row, row_bytes);
      row = padded_row.data();
    }
    ResizeRow(row, columns.table, columns.weights, out);
  }
  return {narrowed.data(), columns.count, end_row - first_row, stride};
}

// The vertical pass; row 0 of `narrow` is the source's row `first_row`.
void Resizer::Impl::Widen(PixelView narrow, std::uint32_t first_row, std::uint8_t* out) const {
  std::size_t row_bytes = std::size_t{narrow.width} * 3;
  for (std::size_t y = 0; y < rows.count; ++y, out += row_bytes) {
    const ResizeTable::Span& span = rows.table.spans[y];
    const std::uint8_t* from = narrow.data + (span.start - first_row) * narrow.stride_bytes;
    ResizeColumns(from, narrow.stride_bytes, span.count, rows.weights.Of(y), row_bytes, out);
  }
}

Resizer::Resizer() : impl_(std::make_unique<Impl>()) {}
Resizer::Resizer(Resizer&&) noexcept = default;
Resizer& Resizer::operator=(Resizer&&) noexcept = default;
Resizer::~Resizer() = default;

void Resizer::Resize(PixelView source, std::uint32_t width, std::uint32_t height, Window window, std::uint8_t* out) {
  assert(source.width > 0 && source.height > 0 && window.width > 0 && window.height > 0);
  assert(window.x <= width && window.width <= width - window.x);
  assert(window.y <= height && window.height <= height - window.y);
  Impl& impl = *impl_;
  impl.columns.Prepare(source.width, width, window.x, window.width);
  impl.rows.Prepare(source.height, height, window.y, window.height);
  std::uint32_t first_row = impl.rows.FirstSource();
  PixelView narrow{source.data + first_row * source.stride_bytes + window.x * std::size_t{3}, window.width,
                   impl.rows.EndSource() - first_row, source.stride_bytes};
  if (!impl.columns.Copies()) narrow = impl.Narrow(source, first_row, impl.rows.EndSource());
  if (impl.rows.Copies()) {
    CopyRows(narrow.data, narrow.stride_bytes, std::size_t{narrow.width} * 3, window.height, out);
  } else {
    impl.Widen(narrow, first_row, out);
  }
}

}  // namespace shardpack
