#include "tools/shardinfo/report.h"

#include <algorithm>
#include <cstdio>

#include "shardpack/error.h"
#include "tools/common/codec_table.h"
#include "tools/common/human.h"
#include "tools/common/table.h"

namespace shardpack::tools {
namespace {

constexpr std::size_t kShownShards = 6, kShownClasses = 8;
constexpr int kHistogramRows = 10, kHistogramWidth = 40;

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

std::string Decimals(double value, int places) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", places, value);
  return text;
}

std::string Line(const std::string& name, const std::string& value) {
  std::string line = "  " + name;
  line.resize(std::max<std::size_t>(line.size(), 14), ' ');
  return line + "  " + value + "\n";
}

std::string Pixels(const Manifest& manifest) {
  const Spread w = SpreadOf(manifest.widths), h = SpreadOf(manifest.heights);
  if (w.min == w.max && h.min == h.max) return std::to_string(w.min) + " x " + std::to_string(h.min) + ", all alike";
  return "median " + std::to_string(w.median) + " x " + std::to_string(h.median) + ", width " + std::to_string(w.min) +
         " to " + std::to_string(w.max) + ", height " + std::to_string(h.min) + " to " + std::to_string(h.max);
}

std::string ShortClasses(const std::vector<std::string>& classes) {
  std::string text = HumanCount(classes.size());
  if (classes.empty()) return text;
  text += ": ";
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (classes.size() > kShownClasses && c == kShownClasses - 1) return text + ", ..., " + Escaped(classes.back());
    text += (c > 0 ? ", " : "") + Escaped(classes[c]);
  }
  return text;
}

// Of those that are no classes.
std::string LabelText(const Manifest& m) {
  if (m.label_kind == LabelKind::kList) return "lists of whole numbers";
  return m.label_kind == LabelKind::kFloat ? "floating-point numbers" : "whole numbers";
}

std::string Head(const Description& d) {
  const Manifest& m = d.manifest;
  std::string out = Escaped(m.name.empty() ? d.path : m.name) + "\n";
  if (!m.name.empty()) out += Line("path", Escaped(d.path));
  out += Line("format", m.format + " shards, version " + std::to_string(m.format_version) +
                            (m.creator.empty() ? "" : ", by " + Escaped(m.creator)));
  out += Line("records", HumanCount(m.records));
  out += Line("images", HumanBytes(m.bytes_in) + " as they went in, " + HumanBytes(m.bytes_out) + " on disk (" +
                            Percent(m.bytes_out, m.bytes_in) + ")" +
                            (m.records > 0 ? ", " + HumanBytes(m.bytes_in / m.records) + " each" : ""));
  out += Line("pixels", Pixels(m));
  out += m.label_kind == LabelKind::kClass ? Line("classes", ShortClasses(m.classes)) : Line("labels", LabelText(m));
  if (m.bad_inputs > 0) out += Line("left out", Counted(m.bad_inputs, "bad input") + ", listed in " + kLedgerName);
  out += Line("digest", m.dataset_digest.Hex());
  return out;
}

std::string Encodings(const Manifest& m) {
  Table table({{"encoding", Align::kLeft}, {"records", Align::kRight}, {"share", Align::kRight}});
  for (const auto& [name, records] : m.encodings) table.Add({name, HumanCount(records), Percent(records, m.records)});
  return "\n" + table.Text();
}

std::string Codecs(const Manifest& m) {
  std::string out = "\n" + CodecTable(m);
  if (!m.receipts.empty()) out += "\n" + ReceiptTable(m);
  return out;
}

std::string Statistics(const Manifest& m) {
  if (!m.statistics) return "";
  const ChannelStatistics statistics = StatisticsOf(*m.statistics);
  Table table({{"channel", Align::kLeft},
               {"mean", Align::kRight},
               {"deviation", Align::kRight},
               {"mean / 255", Align::kRight},
               {"deviation / 255", Align::kRight}});
  const char* const names[] = {"red", "green", "blue"};
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = statistics.mean[c], deviation = statistics.deviation[c];
    table.Add(
        {names[c], Decimals(mean, 2), Decimals(deviation, 2), Decimals(mean / 255, 4), Decimals(deviation / 255, 4)});
  }
  return "\n  over " + HumanCount(m.statistics->pixels) + " pixels of " + Counted(m.statistics->pictures, "picture") +
         "\n" + table.Text();
}

std::string Revisions(const Manifest& m) {
  if (m.revisions.empty()) return "";
  Table table({{"change", Align::kLeft}, {"records", Align::kRight}, {"request", Align::kLeft}});
  for (const Revision& revision : m.revisions)
    table.Add({Escaped(revision.command), HumanCount(revision.records), revision.request.Hex()});
  return "\n" + table.Text();
}

std::string Shards(const Manifest& m) {
  Table table(
      {{"shard", Align::kLeft}, {"records", Align::kRight}, {"bytes", Align::kRight}, {"digest", Align::kLeft}});
  for (std::size_t s = 0; s < m.shards.size(); ++s) {
    if (m.shards.size() > kShownShards && s == kShownShards - 1) {
      table.Add({"... " + HumanCount(m.shards.size() - kShownShards) + " more", "", "", ""});
      s = m.shards.size() - 1;
    }
    const ShardEntry& shard = m.shards[s];
    table.Add({Escaped(shard.file), HumanCount(shard.records), HumanBytes(shard.bytes), shard.digest.Hex()});
  }
  return "\n" + table.Text();
}

std::string Classes(const Description& d) {
  Table table({{"label", Align::kRight}, {"records", Align::kRight}, {"class", Align::kLeft}});
  for (std::size_t c = 0; c < d.class_records.size(); ++c) {
    table.Add({std::to_string(c), HumanCount(d.class_records[c]), Escaped(d.manifest.classes[c])});
  }
  return "\n" + table.Text();
}

// Rows of equal width in whole pixels.
std::string HistogramText(const std::string& title, const Histogram& histogram) {
  if (histogram.empty()) return "";
  const std::uint64_t low = histogram.begin()->first, high = histogram.rbegin()->first;
  const std::uint64_t step = (high - low) / kHistogramRows + 1;
  std::vector<std::uint64_t> rows((high - low) / step + 1);
  for (const auto& [value, records] : histogram) rows[(value - low) / step] += records;
  const std::uint64_t most = *std::max_element(rows.begin(), rows.end());
  Table table({{title, Align::kRight}, {"records", Align::kRight}, {"", Align::kLeft}});
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::uint64_t begin = low + r * step, end = std::min(high, begin + step - 1);
    const std::string range =
        begin == end ? std::to_string(begin) : std::to_string(begin) + " - " + std::to_string(end);
    // A row with any record shows at least one mark.
    const std::uint64_t marks = (rows[r] * kHistogramWidth + most - 1) / most;
    table.Add({range, HumanCount(rows[r]), std::string(marks, '#')});
  }
  return "\n" + table.Text();
}

std::string Layout(const Dataset& dataset) {
  std::string out;
  for (std::uint32_t s = 0; s < dataset.num_shards(); ++s) {
    const ShardReader& shard = dataset.shard(s);
    out += "\n" + Escaped(shard.path().filename().native()) + ": " + HumanBytes(shard.file_bytes()) + ", version " +
           std::to_string(shard.format_version()) + "\n";
    Table table({{"section", Align::kLeft},
                 {"id", Align::kRight},
                 {"offset", Align::kRight},
                 {"bytes", Align::kRight},
                 {"blocks", Align::kRight}});
    for (const ShardReader::Section& section : shard.sections()) {
      table.Add({section.name, std::to_string(section.id), std::to_string(section.offset),
                 std::to_string(section.bytes), std::to_string(section.num_blocks)});
    }
    out += table.Text();
  }
  return out;
}

std::string Records(const Dataset& dataset, std::uint64_t count) {
  Table table({{"index", Align::kRight},
               {"label", Align::kRight},
               {"pixels", Align::kRight},
               {"encoding", Align::kLeft},
               {"codec", Align::kLeft},
               {"stored", Align::kRight},
               {"key", Align::kLeft}});
  for (std::uint64_t i = 0; i < std::min(count, dataset.size()); ++i) {
    const RecordInfo info = dataset.Info(i);
    table.Add({std::to_string(i), std::to_string(info.label),
               std::to_string(info.width) + "x" + std::to_string(info.height), std::string(Name(info.encoding)),
               std::string(Name(info.codec)), HumanBytes(info.stored_bytes), Escaped(dataset.Key(i))});
  }
  return "\n" + table.Text();
}

}  // namespace

std::string Report(const Dataset& dataset, const Description& description, const ReportOptions& options) {
  const Manifest& manifest = description.manifest;
  std::string out = Head(description) + Encodings(manifest) + Codecs(manifest) + Statistics(manifest) +
                    Shards(manifest) + Revisions(manifest);
  if (options.classes) out += Classes(description);
  if (options.histograms) out += HistogramText("width", manifest.widths) + HistogramText("height", manifest.heights);
  if (options.layout) out += Layout(dataset);
  if (options.records > 0) out += Records(dataset, options.records);
  return out;
}

}  // namespace shardpack::tools
