#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "libshard/pack/json_text.h"
#include "libshard/pack/sample_label.h"
#include "libshard/store/text.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/label.h"
#include "tools/common/human.h"
#include "tools/common/run_main.h"
#include "tools/common/validators.h"
#include "tools/shardpack/commands.h"

namespace shardpack::tools {
namespace {

constexpr std::size_t kFlushBytes = 1 << 16;

constexpr char kFooter[] =
    R"(A label is a number, a list of numbers or a fraction, exactly as it was given; metadata is what else was given.

Examples:
  shardpack list packed | head
  shardpack list packed --format csv > records.csv
  shardpack list packed --format jsonl | jq -r 'select(.width < 100) | .key')";

struct Arguments {
  std::string dataset, format = "table";
};

// A record with all that is said of it.
struct Row {
  std::uint64_t index = 0;
  Dataset::Place place;
  RecordInfo info;
  std::string_view key;
  std::string_view class_name;
  bool has_class = false;
  std::string label;     // JSON; empty where it cannot be read
  std::string metadata;  // a JSON object without the label; empty where there is none
  const std::string* shard = nullptr;
};

std::string HexOf(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Lists and fractions stand in the metadata, from which they are taken out here.
void FillLabel(LabelKind kind, Bytes metadata, Row& row) {
  row.metadata = AsText(metadata);
  try {
    row.label = LabelText(kind, row.info.label, metadata);
    if (kind != LabelKind::kList && kind != LabelKind::kFloat) return;
    row.metadata = ParseLabelledObject(row.metadata).rest;
    if (row.metadata == "{}") row.metadata.clear();
  } catch (const Error&) {
    // The label is not where it should be: what is there is shown.
  }
}

nlohmann::ordered_json Parsed(std::string_view text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json::parse(text, nullptr, false);
}

std::string JsonLine(const Row& row) {
  nlohmann::ordered_json out;
  out["index"] = row.index;
  PutBytes(out, "key", row.key);
  out["label"] = Parsed(row.label);
  if (row.has_class) {
    PutBytes(out, "class", row.class_name);
  } else {
    out["class"] = nullptr;
  }
  out["width"] = row.info.width;
  out["height"] = row.info.height;
  out["channels"] = 3;  // of the decoded picture
  out["encoding"] = Name(row.info.encoding);
  out["codec"] = Name(row.info.codec);
  out["shard"] = *row.shard;
  out["record"] = row.place.record;
  out["offset"] = row.info.offset;
  out["stored_bytes"] = row.info.stored_bytes;
  out["raw_bytes"] = row.info.raw_bytes;
  out["checksum"] = HexOf(row.info.stored_xxh3);
  out["metadata"] = Parsed(row.metadata);
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string CsvHeader() {
  return "index,key,label,class,width,height,channels,encoding,codec,shard,record,offset,stored_bytes,raw_bytes,"
         "checksum,metadata\r\n";
}

std::string CsvLine(const Row& row) {
  std::string line = std::to_string(row.index) + "," + CsvField(row.key) + "," + CsvField(row.label) + "," +
                     CsvField(row.class_name) + ",";
  line += std::to_string(row.info.width) + "," + std::to_string(row.info.height) + ",3," +
          std::string(Name(row.info.encoding)) + ",";
  line += std::string(Name(row.info.codec)) + "," + CsvField(*row.shard) + "," + std::to_string(row.place.record) + ",";
  line += std::to_string(row.info.offset) + "," + std::to_string(row.info.stored_bytes) + "," +
          std::to_string(row.info.raw_bytes) + ",";
  return line + HexOf(row.info.stored_xxh3) + "," + CsvField(row.metadata) + "\r\n";
}

std::string TableHeader() {
  char text[128];
  std::snprintf(text, sizeof text, "%10s  %6s  %11s  %-8s  %-8s  %10s  %s\n", "index", "label", "pixels", "encoding",
                "codec", "stored", "key");
  return text;
}

std::string Padded(const std::string& text, std::size_t width, bool left = false) {
  const std::string blanks(width > text.size() ? width - text.size() : 0, ' ');
  return left ? text + blanks : blanks + text;
}

std::string TableLine(const Row& row) {
  const std::string pixels = std::to_string(row.info.width) + "x" + std::to_string(row.info.height);
  return Padded(std::to_string(row.index), 10) + "  " + Padded(row.label, 6) + "  " + Padded(pixels, 11) + "  " +
         Padded(std::string(Name(row.info.encoding)), 8, true) + "  " +
         Padded(std::string(Name(row.info.codec)), 8, true) + "  " + Padded(HumanBytes(row.info.stored_bytes), 10) +
         "  " + Escaped(row.key) + "\n";
}

void RunList(const Arguments& arguments) {
  const Dataset dataset = Dataset::Open(arguments.dataset);
  const Manifest& manifest = dataset.manifest();
  const auto line_of = arguments.format == "jsonl" ? JsonLine : arguments.format == "csv" ? CsvLine : TableLine;
  std::string out = arguments.format == "jsonl" ? "" : arguments.format == "csv" ? CsvHeader() : TableHeader();
  std::string shard_name;
  std::uint32_t shard = ~0u;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    Row row;
    row.index = i;
    row.place = dataset.PlaceOf(i);
    row.info = dataset.Info(i);
    row.key = dataset.Key(i);
    FillLabel(manifest.label_kind, dataset.shard(row.place.shard).Metadata(row.place.record), row);
    row.has_class = manifest.label_kind == LabelKind::kClass && row.info.label >= 0 &&
                    static_cast<std::uint64_t>(row.info.label) < manifest.classes.size();
    if (row.has_class) row.class_name = manifest.classes[static_cast<std::size_t>(row.info.label)];
    if (row.place.shard != shard) {
      shard = row.place.shard;
      shard_name = dataset.shard(shard).path().filename().native();
    }
    row.shard = &shard_name;
    out += line_of(row);
    if (out.size() >= kFlushBytes) {
      WriteOut(out);
      out.clear();
    }
  }
  WriteOut(out);
}

}  // namespace

void AddList(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("list", "Print the records of a dataset");
  const auto arguments = std::make_shared<Arguments>();
  command->footer(kFooter);
  AddDatasetOption(*command, arguments->dataset);
  command->add_option("--format", arguments->format, "table for people, csv, or jsonl: an object a line")
      ->capture_default_str()
      ->check(OneOf({"table", "csv", "jsonl"}))
      ->type_name("table|csv|jsonl");
  command->callback([arguments, &status] {
    RunList(*arguments);
    status = 0;
  });
}

}  // namespace shardpack::tools
