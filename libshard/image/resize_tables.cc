#include "libshard/image/resize_tables.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace shardpack::image {
namespace {

double Triangle(double x) { return x < 0 ? std::max(0.0, 1.0 + x) : std::max(0.0, 1.0 - x); }

// Rounds half away from zero; the weights of a triangle are never negative.
std::int32_t ToFixed(double weight) { return static_cast<std::int32_t>(0.5 + weight * (1 << kWeightBits)); }

struct Axis {
  std::uint32_t in_size;
  double scale, filter_scale;

  // Each expression as Pillow has it: another order of the operations rounds elsewhere.
  double Centre(std::uint32_t position) const { return (position + 0.5) * scale; }
  ResizeTable::Span SpanOf(double centre) const {
    auto start = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - filter_scale + 0.5));
    auto end = std::min<std::int64_t>(in_size, static_cast<std::int64_t>(centre + filter_scale + 0.5));
    return {static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(end - start)};
  }
};

void FillWeights(const Axis& axis, double centre, ResizeTable::Span span, std::vector<double>& scratch,
                 std::int32_t* weights) {
  double sum = 0, inverse = 1.0 / axis.filter_scale;
  for (std::uint32_t x = 0; x < span.count; ++x) {
    scratch[x] = Triangle((x + span.start - centre + 0.5) * inverse);
    sum += scratch[x];
  }
  for (std::uint32_t x = 0; x < span.count; ++x) weights[x] = ToFixed(sum != 0 ? scratch[x] / sum : scratch[x]);
}

}  // namespace

void FillResizeTable(std::uint32_t in_size, std::uint32_t out_size, std::uint32_t first, std::uint32_t count,
                     std::uint32_t granule, ResizeTable& table) {
  assert(in_size > 0 && out_size > 0 && first + count <= out_size);
  double scale = static_cast<double>(in_size) / out_size;
  Axis axis{in_size, scale, std::max(scale, 1.0)};
  auto length = static_cast<std::uint32_t>(std::ceil(axis.filter_scale)) * 2 + 1;
  table.row_length = (length + granule - 1) / granule * granule;
  table.spans.resize(count);
  table.weights.assign(std::size_t{count} * table.row_length, 0);
  thread_local std::vector<double> scratch;
  scratch.resize(length);
  for (std::uint32_t i = 0; i < count; ++i) {
    double centre = axis.Centre(first + i);
    table.spans[i] = axis.SpanOf(centre);
    assert(table.spans[i].count <= length);
    FillWeights(axis, centre, table.spans[i], scratch, table.weights.data() + std::size_t{i} * table.row_length);
  }
}

bool VerticalFirst(std::uint32_t in_width, std::uint32_t in_height, std::uint32_t out_width, std::uint32_t out_height) {
  std::int64_t lost_width = std::int64_t{in_width} - out_width, lost_height = std::int64_t{in_height} - out_height;
  return lost_height > 0 && lost_height > 2 * lost_width;
}

}  // namespace shardpack::image
