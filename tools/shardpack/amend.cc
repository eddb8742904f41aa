#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

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

constexpr char kFooter[] =
    R"(LEDGER is JSON lines, each with the key of a record to drop as "key" (or "key_hex", where it is not UTF-8): a
bad_inputs.jsonl, the ledger of a loader, or what `verify --json` prints. What else stands in a line does not matter.

Only shards that hold such a record are written anew; the others stay as they are. Payloads are copied as they are
stored, not compressed again. Killed at any moment and run again, it gives the same bytes; until it ends the old dataset
stays whole. Class numbers stay, also of a class that loses its last record.

Examples:
  shardpack amend packed --drop blurred.jsonl
  shardpack verify packed --json | shardpack amend packed --drop /dev/stdin    drop the records that are damaged
  echo '{"key":"cats/1.jpg"}' | shardpack amend packed --drop /dev/stdin

Exit status: 0 done, also where some keys were not there; 2 nothing would be left; 3 the ledger cannot be read or none of
its keys is in the dataset; 4 the system refused, or another process writes there; 130 interrupted.)";

struct Arguments {
  std::string dataset, ledger, progress = "auto";
  bool json = false;
};

void SayWhatWasNotThere(const AmendResult& result) {
  if (result.lines_without_key > 0)
    std::fprintf(stderr, "passed over in the ledger: %s without a key\n",
                 Counted(result.lines_without_key, "line").c_str());
  if (result.not_found == 0 || result.already_complete) return;
  std::string named;
  for (const std::string& key : result.unknown_keys) named += (named.empty() ? "" : ", ") + Escaped(key);
  if (result.not_found > result.unknown_keys.size()) named += ", ...";
  std::fprintf(stderr, "not in the dataset: %s (%s)\n", Counted(result.not_found, "key").c_str(), named.c_str());
}

void PrintJson(const AmendResult& result) {
  nlohmann::ordered_json out;
  out["dropped"] = result.dropped;
  out["not_found"] = result.not_found;
  out["already_complete"] = result.already_complete;
  out["shards_rewritten"] = result.shards_rewritten;
  out["shards_removed"] = result.shards_removed;
  out["records"] = result.manifest.records;
  out["shards"] = result.manifest.shards.size();
  out["bytes_out"] = result.manifest.bytes_out;
  out["dataset_digest"] = result.manifest.dataset_digest.Hex();
  WriteOut(out.dump() + "\n");
}

void PrintResult(const AmendResult& result) {
  std::string text;
  if (result.already_complete) {
    text = "already complete: none of these records is in the dataset any more\n";
  } else {
    text = "dropped " + Counted(result.dropped, "record") + ": rewrote " + Counted(result.shards_rewritten, "shard");
    if (result.shards_removed > 0) text += ", removed " + HumanCount(result.shards_removed) + " left empty";
    text += "; " + Counted(result.manifest.records, "record") + " in " +
            Counted(result.manifest.shards.size(), "shard") + " remain\n";
    if (result.statistics_given_up)
      text += "the statistics of the pixels could not be kept true and were left out of dataset.json\n";
  }
  WriteOut(text);
}

void RunAmend(const Arguments& arguments) {
  ProgressBar bar(ParseProgressStyle(arguments.progress));
  AmendOptions options;
  options.dataset = arguments.dataset;
  options.ledger = arguments.ledger;
  options.progress = [&](const PackProgress& progress) { bar.Show(progress); };
  options.stop = &Stopped();
  CatchSignals();
  const AmendResult result = Amend(options);
  bar.Clear();
  SayWhatWasNotThere(result);
  arguments.json ? PrintJson(result) : PrintResult(result);
}

}  // namespace

void AddAmend(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("amend", "Drop records from a dataset");
  const auto arguments = std::make_shared<Arguments>();
  command->footer(kFooter);
  AddDatasetOption(*command, arguments->dataset);
  command->add_option("--drop", arguments->ledger, "JSON lines with the keys of the records to drop")
      ->required()
      ->check(NotEmpty())
      ->type_name("LEDGER");
  AddProgressOption(*command, arguments->progress);
  command->add_flag("--json", arguments->json, "The result as one line of JSON");
  command->callback([arguments, &status] {
    RunAmend(*arguments);
    status = kDone;
  });
}

}  // namespace shardpack::tools
