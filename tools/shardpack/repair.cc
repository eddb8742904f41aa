#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "libshard/pack/json_text.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "tools/common/exit_status.h"
#include "tools/common/human.h"
#include "tools/common/progress_bar.h"
#include "tools/common/run_main.h"
#include "tools/common/validators.h"
#include "tools/shardpack/commands.h"
#include "tools/shardpack/convert_options.h"

namespace shardpack::tools {
namespace {

using nlohmann::ordered_json;
using InDataset = RepairResult::InDataset;

constexpr std::size_t kShownLosses = 100;

constexpr char kFooter[] =
    R"(Looks for the header before each record, whatever became of the file's own header, index and footer, and writes what is
whole into a new file, with keys, labels, metadata and checksums. SHARD itself is not changed. Where no record was
harmed, the new file is byte for byte the shard as it once was. A dictionary or class names that are lost are taken from
dataset.json and the shards beside it.

Examples:
  shardpack repair packed/shard-00003-5f3a9c01.shard
  shardpack repair packed/shard-00003-5f3a9c01.shard --in-place     where it comes back as it was
  shardpack repair cut.shard -o whole.shard --json

Exit status: 0 nothing was lost, 1 records were lost and are named, 2 wrong usage, 3 nothing could be read, 4 the system
refused, 130 interrupted.)";

struct Arguments {
  std::string shard, output, progress = "auto";
  bool in_place = false, json = false;
  int threads = 0;
};

std::string LossLine(const RepairResult::Loss& loss) {
  std::string line = "lost: ";
  if (loss.records == 0) {
    line += "unknown";
  } else if (loss.records > 1) {
    line += "records " + std::to_string(*loss.record) + " to " + std::to_string(*loss.record + loss.records - 1);
  } else {
    line += "record " + std::to_string(*loss.record);
  }
  if (loss.key) line += " (" + Escaped(*loss.key) + ")";
  return line + " at byte " + std::to_string(loss.offset) + ", " + Counted(loss.bytes, "byte") + ": " + loss.what +
         "\n";
}

std::uint64_t LostRecords(const RepairResult& result) {
  std::uint64_t lost = 0;
  for (const RepairResult::Loss& loss : result.losses) lost += loss.records;
  return lost;
}

std::string HowToPlace(const RepairResult& result, const Arguments& arguments) {
  const std::string shard = Escaped(arguments.shard), output = Escaped(arguments.output);
  if (result.placed) return shard + " is again the shard that dataset.json names\n";
  if (result.in_dataset == InDataset::kSameDigest)
    return "it is the very shard that dataset.json names; put it in place: mv " + output + " " + shard + "\n";
  if (result.in_dataset == InDataset::kOtherDigest) {
    return "it is not the shard that dataset.json names, which stays as it was" +
           std::string(arguments.in_place ? " (--in-place puts only that one in place)" : "") +
           ": pack its records with `shardpack convert " + output + " ...`, or the lost inputs anew\n";
  }
  if (arguments.in_place) return "no dataset.json beside it names it: --in-place did nothing\n";
  return "";
}

void PrintResult(const RepairResult& result, const Arguments& arguments) {
  std::string text;
  for (std::size_t i = 0; i < result.losses.size() && i < kShownLosses; ++i) text += LossLine(result.losses[i]);
  if (result.losses.size() > kShownLosses)
    text += "... and " + HumanCount(result.losses.size() - kShownLosses) + " more (--json lists all)\n";
  for (const std::string& note : result.notes) text += "note: " + note + "\n";
  if (result.unchanged) {
    text += "no damage: ";
  } else {
    text += result.index_was_whole ? "the index was whole: " : "the index was made anew: ";
  }
  text +=
      Counted(result.records, "record") + " written to " + Escaped(result.placed ? arguments.shard : arguments.output);
  text += result.losses.empty() ? ", none lost\n" : ", " + HumanCount(LostRecords(result)) + " lost\n";
  WriteOut(text + HowToPlace(result, arguments));
}

ordered_json LossJson(const RepairResult::Loss& loss) {
  ordered_json out;
  out["offset"] = loss.offset;
  out["bytes"] = loss.bytes;
  out["record"] = loss.record ? ordered_json(*loss.record) : ordered_json(nullptr);
  out["records"] = loss.records;
  if (loss.key) {
    PutBytes(out, "key", *loss.key);
  } else {
    out["key"] = nullptr;
  }
  out["what"] = loss.what;
  return out;
}

void PrintJson(const RepairResult& result, const Arguments& arguments) {
  ordered_json out;
  PutBytes(out, "output", result.placed ? arguments.shard : arguments.output);
  out["records"] = result.records;
  out["lost"] = LostRecords(result);
  out["index_was_whole"] = result.index_was_whole;
  out["unchanged"] = result.unchanged;
  out["bytes"] = result.summary.bytes;
  out["digest"] = result.summary.file_digest.Hex();
  out["matches_dataset"] = nullptr;
  if (result.in_dataset != InDataset::kNotNamed) out["matches_dataset"] = result.in_dataset == InDataset::kSameDigest;
  out["placed"] = result.placed;
  out["losses"] = ordered_json::array();
  for (const RepairResult::Loss& loss : result.losses) out["losses"].push_back(LossJson(loss));
  out["notes"] = result.notes;
  WriteOut(out.dump() + "\n");
}

void RunRepair(Arguments& arguments, int& status) {
  if (arguments.output.empty()) arguments.output = arguments.shard + ".repaired";
  ProgressBar bar(ParseProgressStyle(arguments.progress));
  RepairOptions options;
  options.shard = arguments.shard;
  options.output = arguments.output;
  options.in_place = arguments.in_place;
  options.threads = arguments.threads;
  options.progress = [&](const PackProgress& progress) { bar.Show(progress); };
  options.stop = &Stopped();
  CatchSignals();
  const RepairResult result = Repair(options);
  bar.Clear();
  status = result.losses.empty() ? kDone : kDoneWithBadInputs;
  arguments.json ? PrintJson(result, arguments) : PrintResult(result, arguments);
}

}  // namespace

void AddRepair(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("repair", "Rebuild a damaged shard from its records");
  const auto arguments = std::make_shared<Arguments>();
  command->footer(kFooter);
  command->add_option("SHARD", arguments->shard, "A shard file")->required()->check(NotEmpty())->type_name("");
  command->add_option("-o,--output", arguments->output, "The new file; else SHARD.repaired. Nothing is overwritten")
      ->check(NotEmpty())
      ->type_name("FILE");
  command->add_flag("--in-place", arguments->in_place,
                    "Put the new file in the place of SHARD where it is the one that dataset.json beside it names");
  command->add_option("--threads", arguments->threads, "Threads; else all that this process may use")
      ->check(WholeNumber(1, 4096))
      ->type_name("N");
  AddProgressOption(*command, arguments->progress);
  command->add_flag("--json", arguments->json, "The result as one line of JSON");
  command->callback([arguments, &status] { RunRepair(*arguments, status); });
}

}  // namespace shardpack::tools
