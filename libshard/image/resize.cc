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
  std::uint32_t first_source = 0, num_sources = 0;  // what the window needs of the source
  ResizeTable table;                                // spans count from first_source; left alone where the size stays
  PairedWeights weights;

  void Prepare(std::uint32_t in, std::uint32_t out, std::uint32_t window_first, std::uint32_t window_count) {
    if (in == in_size && out == out_size && window_first == first && window_count == count) return;
    in_size = in, out_size = out, first = window_first, count = window_count;
    first_source = first, num_sources = count;
    if (Copies()) return;
    FillResizeTable(in, out, first, count, 2, table);
    PairWeights(table, weights);
    first_source = table.spans.front().start;
    num_sources = table.spans.back().start + table.spans.back().count - first_source;
    for (ResizeTable::Span& span : table.spans) span.start -= first_source;
  }
  bool Copies() const { return in_size == out_size; }
};

std::size_t RowBytes(PixelView view) { return std::size_t{view.width} * 3; }

void CopyRows(PixelView in, std::uint8_t* out) {
  const std::size_t row_bytes = RowBytes(in);
  for (std::size_t y = 0; y < in.height; ++y)
    std::memcpy(out + y * row_bytes, in.data + y * in.stride_bytes, row_bytes);
}

// The vertical pass over `in`, which holds the axis's sources.
void ResizeVertically(PixelView in, const Axis& axis, std::uint8_t* out) {
  const std::size_t row_bytes = RowBytes(in);
  for (std::size_t y = 0; y < axis.count; ++y, out += row_bytes) {
    const ResizeTable::Span& span = axis.table.spans[y];
    const std::uint8_t* from = in.data + span.start * in.stride_bytes;
    ResizeColumns(from, in.stride_bytes, span.count, axis.weights.Of(y), row_bytes, out);
  }
}

}  // namespace

struct Resizer::Impl {
  Axis columns, rows;
  std::vector<std::uint8_t> between;  // the passes
  // Copies of the rows that the kernel would read or write past the end of memory with.
  std::vector<std::uint8_t> padded_in, padded_out;

  std::uint8_t* Between(std::size_t bytes);
  void ResizeHorizontally(PixelView in, std::uint8_t* out);
};

// Never shrinks, so that crops of changing sizes soon stop allocating.
std::uint8_t* Resizer::Impl::Between(std::size_t bytes) {
  between.resize(std::max(between.size(), bytes));
  return between.data();
}

// The horizontal pass over `in`, which holds the axis's sources.
void Resizer::Impl::ResizeHorizontally(PixelView in, std::uint8_t* out) {
  const std::size_t in_bytes = RowBytes(in), out_bytes = std::size_t{columns.count} * 3;
  padded_in.resize(std::max(padded_in.size(), in_bytes + image::kRowReadSlack));
  padded_out.resize(std::max(padded_out.size(), out_bytes + image::kRowWriteSlack));
  const std::uint8_t* in_end = in.data + (in.height - 1) * in.stride_bytes + in_bytes;
  const std::uint8_t* out_end = out + in.height * out_bytes;
  const std::uint8_t* row = in.data;
  for (std::uint32_t y = 0; y < in.height; ++y, row += in.stride_bytes, out += out_bytes) {
    const std::uint8_t* from = row;
    if (static_cast<std::size_t>(in_end - row) < in_bytes + image::kRowReadSlack) {
      std::memcpy(padded_in.data(), row, in_bytes);
      from = padded_in.data();
    }
    if (static_cast<std::size_t>(out_end - out) < out_bytes + image::kRowWriteSlack) {
      ResizeRow(from, columns.table, columns.weights, padded_out.data());
      std::memcpy(out, padded_out.data(), out_bytes);
    } else {
      ResizeRow(from, columns.table, columns.weights, out);  // what it writes too much belongs to the rows that follow
    }
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
  Axis &columns = impl.columns, &rows = impl.rows;
  columns.Prepare(source.width, width, window.x, window.width);
  rows.Prepare(source.height, height, window.y, window.height);
  const PixelView needed{source.data + rows.first_source * source.stride_bytes + columns.first_source * std::size_t{3},
                         columns.num_sources, rows.num_sources, source.stride_bytes};
  if (columns.Copies() && rows.Copies()) {
    CopyRows(needed, out);
  } else if (columns.Copies()) {
    ResizeVertically(needed, rows, out);
  } else if (rows.Copies()) {
    impl.ResizeHorizontally(needed, out);
  } else if (image::VerticalFirst(source.width, source.height, width, height)) {
    const std::size_t stride = RowBytes(needed);
    std::uint8_t* between = impl.Between(stride * window.height);
    ResizeVertically(needed, rows, between);
    impl.ResizeHorizontally({between, needed.width, window.height, stride}, out);
  } else {
    const std::size_t stride = std::size_t{window.width} * 3;
    std::uint8_t* between = impl.Between(stride * needed.height);
    impl.ResizeHorizontally(needed, between);
    ResizeVertically({between, window.width, needed.height, stride}, rows, out);
  }
}

}  // namespace shardpack
