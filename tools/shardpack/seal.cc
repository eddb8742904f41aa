#include <charconv>
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

constexpr char kFooter[] =
    R"(The last step of convert alone, after parts on many machines: checks that every shard of the plan is there and whole,
writes the ledger of bad inputs and dataset.json, and removes the work files. Needs no source. The part that ends last
does it by itself where it can see the shards of all.

Examples:
  shardpack seal /shared/packed
  shardpack seal /shared/packed --max-bad 100     refuses where more inputs were left out, over all parts

Exit status: 0 done, 1 done without the bad inputs named in OUT/bad_inputs.jsonl, 2 shards are missing (they and their
parts are named), 3 too many bad inputs, or a shard was harmed since or is gone, 4 the system refused,
130 interrupted.)";

struct Arguments {
  std::string output, progress = "auto";
  std::uint64_t max_bad = 0;
  bool json = false;
};

void PrintJson(const Arguments& arguments, const Manifest& manifest) {
  nlohmann::ordered_json out;
  PutBytes(out, "output", arguments.output);
  out["format"] = manifest.format;
  out["sealed"] = true;
  out["records"] = manifest.records;
  out["shards"] = manifest.shards.size();
  out["classes"] = manifest.classes.size();
  out["bytes_in"] = manifest.bytes_in;
  out["bytes_out"] = manifest.bytes_out;
  out["bad_inputs"] = manifest.bad_inputs;
  out["dataset_digest"] = manifest.dataset_digest.Hex();
  WriteOut(out.dump() + "\n");
}

void RunSeal(const CLI::App& command, const Arguments& arguments, int& status) {
  SealOptions options;
  options.output = arguments.output;
  if (command.count("--max-bad") > 0) options.max_bad = arguments.max_bad;
  ProgressBar bar(ParseProgressStyle(arguments.progress));
  options.progress = [&](const PackProgress& progress) { bar.Show(progress); };
  options.stop = &Stopped();
  CatchSignals();
  const PackResult result = Seal(options);
  bar.Clear();
  const Manifest& manifest = result.manifest;
  const std::string output = Escaped(options.output.native());
  std::fprintf(stderr, result.already_complete ? "%s is already complete: %s in %s\n" : "sealed %s: %s in %s\n",
               output.c_str(), Counted(manifest.records, "record").c_str(),
               Counted(manifest.shards.size(), "shard").c_str());
  if (manifest.bad_inputs > 0) {
    std::fprintf(stderr, "%s left out, listed in %s\n", Counted(manifest.bad_inputs, "bad input").c_str(),
                 Escaped((options.output / kLedgerName).native()).c_str());
  }
  status = manifest.bad_inputs > 0 ? kDoneWithBadInputs : kDone;
  if (arguments.json) PrintJson(arguments, manifest);
}

}  // namespace

void AddSeal(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("seal", "The last step of convert alone, after parts on many machines");
  const auto arguments = std::make_shared<Arguments>();
  command->footer(kFooter);
  command->add_option("OUT", arguments->output, "The folder that was packed into")
      ->required()
      ->check(NotEmpty())
      ->type_name("");
  command->add_option("--max-bad", arguments->max_bad, "Most bad inputs that are left out; else as the plan says")
      ->check(WholeNumber(0))
      ->type_name("N");
  AddProgressOption(*command, arguments->progress);
  command->add_flag("--json", arguments->json, "The result as one line of JSON");
  command->callback([command, arguments, &status] { RunSeal(*command, *arguments, status); });
}

}  // namespace shardpack::tools
