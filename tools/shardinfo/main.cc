#include <memory>
#include <nlohmann/json.hpp>

#include "libshard/pack/json_text.h"
#include "libshard/store/text.h"
#include "shardpack/error.h"
#include "tools/common/exit_status.h"
#include "tools/common/run_main.h"
#include "tools/common/validators.h"
#include "tools/shardinfo/describe.h"
#include "tools/shardinfo/report.h"

namespace {

using namespace shardpack;
using namespace shardpack::tools;

constexpr char kFooter[] = R"(Examples:
  shardinfo packed                         what is in it
  shardinfo packed --classes --histograms  with every class, and how widths and heights spread
  shardinfo packed --json | jq .records
  shardinfo packed/shard-00000-5f3a9c01.shard --layout --records 5)";

struct Arguments {
  std::string path;
  bool json = false;
  ReportOptions report;
};

nlohmann::ordered_json SpreadJson(const Histogram& histogram) {
  const Spread spread = SpreadOf(histogram);
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

// A list keeps its places: what is not UTF-8 is an object with its hexadecimal digits, as in the manifest.
nlohmann::ordered_json TextOrHex(const std::string& bytes) {
  return IsUtf8(bytes) ? nlohmann::ordered_json(bytes) : nlohmann::ordered_json{{"hex", ToHex(bytes)}};
}

nlohmann::ordered_json HistogramJson(const Histogram& histogram) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& [value, records] : histogram) out.push_back({value, records});
  return out;
}

nlohmann::ordered_json LayoutJson(const ShardReader& shard) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const ShardReader::Section& section : shard.sections()) {
    out.push_back({{"section", section.name},
                   {"id", section.id},
                   {"offset", section.offset},
                   {"bytes", section.bytes},
                   {"block_bytes", section.block_bytes},
                   {"num_blocks", section.num_blocks}});
  }
  return out;
}

nlohmann::ordered_json ReceiptsJson(const Manifest& manifest) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const CodecReceipt& receipt : manifest.receipts) {
    out.push_back({{"encoding", receipt.encoding},
                   {"codec", receipt.codec},
                   {"sample_records", receipt.sample_records},
                   {"sample_raw_bytes", receipt.sample_raw_bytes},
                   {"sample_stored_bytes", receipt.sample_stored_bytes},
                   {"decode_ns_per_record", receipt.decode_ns_per_record}});
  }
  return out;
}

nlohmann::ordered_json StatisticsJson(const Manifest& manifest) {
  if (!manifest.statistics) return nullptr;
  const ChannelSums& sums = *manifest.statistics;
  const ChannelStatistics statistics = StatisticsOf(sums);
  return {{"pictures", sums.pictures},         {"pixels", sums.pixels}, {"mean", statistics.mean},
          {"deviation", statistics.deviation}, {"sum", sums.sum},       {"sum_of_squares", sums.sum_of_squares}};
}

nlohmann::ordered_json RevisionsJson(const Manifest& manifest) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Revision& revision : manifest.revisions) {
    out.push_back({{"command", revision.command}, {"request", revision.request.Hex()}, {"records", revision.records}});
  }
  return out;
}

std::string Json(const Dataset& dataset, const Description& description, const ReportOptions& options) {
  const Manifest& m = description.manifest;
  nlohmann::ordered_json out;
  out["name"] = m.name.empty() ? nlohmann::ordered_json(nullptr) : TextOrHex(m.name);
  out["format"] = m.format;
  out["format_version"] = m.format_version;
  out["records"] = m.records;
  out["bytes"] = m.bytes_out;
  out["bytes_in"] = m.bytes_in;
  out["bad_inputs"] = m.bad_inputs;
  out["label_kind"] = Name(m.label_kind);
  out["classes"] = nlohmann::ordered_json::array();
  for (const std::string& name : m.classes) out["classes"].push_back(TextOrHex(name));
  out["class_records"] = description.class_records;
  out["shards"] = nlohmann::ordered_json::array();
  for (std::uint32_t s = 0; s < m.shards.size(); ++s) {
    const ShardEntry& shard = m.shards[s];
    out["shards"].push_back({{"file", TextOrHex(shard.file)},
                             {"records", shard.records},
                             {"bytes", shard.bytes},
                             {"digest", shard.digest.Hex()}});
    if (options.layout) out["shards"].back()["layout"] = LayoutJson(dataset.shard(s));
  }
  out["encodings"] = m.encodings;
  out["codecs"] = nlohmann::ordered_json::object();
  for (const auto& [name, count] : m.codecs) {
    out["codecs"][name] = {
        {"records", count.records}, {"raw_bytes", count.raw_bytes}, {"stored_bytes", count.stored_bytes}};
  }
  out["receipts"] = ReceiptsJson(m);
  out["width"] = SpreadJson(m.widths);
  out["height"] = SpreadJson(m.heights);
  if (options.histograms) {
    out["width_histogram"] = HistogramJson(m.widths);
    out["height_histogram"] = HistogramJson(m.heights);
  }
  out["statistics"] = StatisticsJson(m);
  out["revisions"] = RevisionsJson(m);
  out["options"] = m.options;
  out["creator"] = m.creator;
  out["dataset_digest"] = m.dataset_digest.Hex();
  return out.dump() + "\n";
}

void Run(const Arguments& arguments) {
  const Dataset dataset = Dataset::Open(arguments.path);
  const Description description = Describe(arguments.path, dataset);
  WriteOut(arguments.json ? Json(dataset, description, arguments.report)
                          : Report(dataset, description, arguments.report));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Say what is in a dataset or shard.", "shardinfo"};
  Arguments arguments;
  app.footer(kFooter);
  app.set_version_flag("--version", "shardinfo " SHARDPACK_VERSION);
  AddDatasetOption(app, arguments.path);
  app.add_flag("--json", arguments.json, "One line of JSON; with --histograms and --layout also these");
  app.add_flag("--classes", arguments.report.classes, "Every class with its number of records");
  app.add_flag("--histograms", arguments.report.histograms, "How widths and heights spread");
  app.add_option("--records", arguments.report.records, "The first N records")
      ->check(WholeNumber(0))
      ->type_name("N")
      ->excludes("--json");
  app.add_flag("--layout", arguments.report.layout, "Where the sections of each shard lie");
  int status = kDone;
  app.callback([&] { Run(arguments); });
  return RunMain(app, argc, argv, status);
}
