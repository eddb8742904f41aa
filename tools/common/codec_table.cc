#include "tools/common/codec_table.h"

#include <cstdio>

#include "shardpack/error.h"
#include "tools/common/human.h"
#include "tools/common/table.h"

namespace shardpack::tools {
namespace {

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

std::string Saved(std::uint64_t raw_bytes, std::uint64_t stored_bytes) {
  const std::uint64_t saved = stored_bytes < raw_bytes ? raw_bytes - stored_bytes : 0;
  return HumanBytes(saved) + " (" + Percent(saved, raw_bytes) + ")";
}

std::string Time(std::uint64_t ns) {
  if (ns < 10'000) return HumanCount(ns) + " ns";
  return HumanCount(ns / 1000) + " us";
}

// Mean over the sample's records of the codec.
std::string DecodeTime(const Manifest& manifest, const std::string& codec) {
  std::uint64_t records = 0;
  long double ns = 0;
  for (const CodecReceipt& receipt : manifest.receipts) {
    if (receipt.codec != codec) continue;
    records += receipt.sample_records;
    ns += static_cast<long double>(receipt.decode_ns_per_record) * static_cast<long double>(receipt.sample_records);
  }
  return records == 0 ? "-" : Time(static_cast<std::uint64_t>(ns / static_cast<long double>(records)));
}

}  // namespace

std::string CodecTable(const Manifest& manifest) {
  Table table({{"codec", Align::kLeft},
               {"records", Align::kRight},
               {"share", Align::kRight},
               {"raw", Align::kRight},
               {"stored", Align::kRight},
               {"saved", Align::kRight},
               {"inflate each", Align::kRight}});
  for (const auto& [name, count] : manifest.codecs) {
    table.Add({name, HumanCount(count.records), Percent(count.records, manifest.records), HumanBytes(count.raw_bytes),
               HumanBytes(count.stored_bytes), Saved(count.raw_bytes, count.stored_bytes),
               name == "stored" ? "0 ns" : DecodeTime(manifest, name)});
  }
  return table.Text();
}

std::string ReceiptTable(const Manifest& manifest) {
  if (manifest.receipts.empty()) return "";
  Table table({{"in the sample", Align::kLeft},
               {"chosen", Align::kLeft},
               {"records", Align::kRight},
               {"raw", Align::kRight},
               {"saved", Align::kRight},
               {"inflate each", Align::kRight}});
  for (const CodecReceipt& receipt : manifest.receipts) {
    table.Add({Escaped(receipt.encoding), Escaped(receipt.codec), HumanCount(receipt.sample_records),
               HumanBytes(receipt.sample_raw_bytes), Saved(receipt.sample_raw_bytes, receipt.sample_stored_bytes),
               Time(receipt.decode_ns_per_record)});
  }
  return table.Text();
}

}  // namespace shardpack::tools
