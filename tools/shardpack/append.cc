#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "libshard/pack/json_text.h"
#include "libshard/pack/plan_file.h"
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
    R"(The inputs become new shards after the last one of OUT; no old shard is written or renamed, and readers see the old
dataset until the new one is complete. What becomes of a picture, how it is compressed and how large shards are is as
OUT was made; class numbers stay. A key that OUT has already, and a class that it does not know, are errors.
Killed at any moment and run again, it goes on where it stopped, and the same bytes come out.

Examples:
  shardpack append packed more-photos/
  shardpack append packed birds/ --new-classes         classes that are new come after the old ones
  shardpack append packed new.csv --label-column species

Exit status: as of convert: 0 done, 1 done without the bad inputs named in OUT/bad_inputs.jsonl, 2 wrong usage, a key or
a class that may not be, 3 bad input, 4 the system refused, 130 interrupted.)";

struct Arguments {
  ConvertArguments convert;
  bool new_classes = false;
};

// Options of convert that have no meaning here, and those that the dataset decides: the first are not known, the second
// may be given where they say what it says.
constexpr const char* kNotHere[] = {"--output", "--classes", "--split",       "--overwrite",
                                    "--name",   "--format",  "--hdf5-layout", "--dry-run"};
const std::map<std::string, std::vector<std::string>>& DecidedByDataset() {
  static const std::map<std::string, std::vector<std::string>> kOptions = {
      {"--images", {"images"}},
      {"--quality", {"quality"}},
      {"--chroma", {"chroma"}},
      {"--resize", {"resize"}},
      {"--compression", {"compression", "zstd-level"}},
      {"--dictionary", {"dictionary"}},
      {"--statistics", {"statistics"}},
      {"--shard-size", {"shard-size"}},
      {"--shard-records", {"shard-records"}},
      {"--verify-images", {"verify-images"}},
      {"--max-pixels", {"max-pixels"}}};
  return kOptions;
}

void CheckDecided(const CLI::App& command, const PackOptions& options) {
  const std::map<std::string, std::string> given = ContentOptions(options),
                                           made = Manifest::Load(options.output).options;
  const auto value = [](const std::map<std::string, std::string>& from, const std::string& name) {
    const auto found = from.find(name);
    return found == from.end() ? std::string() : found->second;
  };
  for (const auto& [option, names] : DecidedByDataset()) {
    if (command.count(option) == 0) continue;
    for (const std::string& name : names) {
      if (value(given, name) == value(made, name)) continue;
      const std::string was = value(made, name);
      throw UsageError{option + ": the dataset was made with " + (was.empty() ? "none" : Escaped(was)) +
                       ", and what is appended is made likewise: leave the option out"};
    }
  }
}

// By this call; the last revision is of another one where there was nothing to do.
std::uint64_t Added(const PackResult& result) {
  if (!result.sealed || result.already_complete || result.manifest.revisions.empty()) return 0;
  return result.manifest.revisions.back().records;
}

void PrintJson(const Arguments& arguments, const PackResult& result) {
  const Manifest& manifest = result.manifest;
  nlohmann::ordered_json out;
  PutBytes(out, "output", arguments.convert.output);
  out["format"] = manifest.format;
  out["sealed"] = result.sealed;
  out["already_complete"] = result.already_complete;
  out["added"] = Added(result);
  out["records"] = manifest.records;
  out["shards"] = manifest.shards.size();
  out["classes"] = manifest.classes.size();
  out["bytes_in"] = manifest.bytes_in;
  out["bytes_out"] = manifest.bytes_out;
  out["bad_inputs"] = manifest.bad_inputs;
  out["ignored_files"] = result.ignored_files;
  out["seconds"] = result.seconds;
  out["dataset_digest"] =
      result.sealed ? nlohmann::ordered_json(manifest.dataset_digest.Hex()) : nlohmann::ordered_json();
  WriteOut(out.dump() + "\n");
}

void PrintResult(const PackResult& result) {
  const Manifest& manifest = result.manifest;
  if (!result.sealed) {
    WriteOut("this part is done: " + HumanCount(result.shards_done) + " of " +
             Counted(result.shards_planned, "new shard") + "; what is missing: shardpack status\n");
    return;
  }
  if (result.already_complete) {
    WriteOut("already complete: the same inputs were appended before\n");
    return;
  }
  WriteOut("appended " + Counted(Added(result), "record") + ": " + Counted(manifest.records, "record") + " of " +
           Counted(manifest.classes.size(), "class") + " in " + Counted(manifest.shards.size(), "shard") + "\n");
}

void SayBad(const PackResult& result) {
  for (const PackResult::Bad& bad : result.first_bad)
    std::fprintf(stderr, "left out: %s: %s\n", Escaped(bad.key).c_str(), Escaped(bad.reason).c_str());
}

void RunAppend(const CLI::App& command, Arguments& arguments, int& status) {
  PackOptions options = ToPackOptions(command, arguments.convert).front();
  CheckDecided(command, options);
  ProgressBar bar(ParseProgressStyle(arguments.convert.progress));
  options.progress = [&](const PackProgress& progress) { bar.Show(progress); };
  options.warn = [&](const std::string& line) {
    bar.Clear();
    std::fprintf(stderr, "%s\n", line.c_str());
  };
  options.stop = &Stopped();
  CatchSignals();
  const PackResult result = Append(options, arguments.new_classes);
  bar.Clear();
  SayBad(result);
  const bool left_out = result.sealed && !result.already_complete && !result.first_bad.empty();
  status = left_out ? kDoneWithBadInputs : kDone;
  arguments.convert.json ? PrintJson(arguments, result) : PrintResult(result);
}

}  // namespace

void AddAppend(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("append", "Add inputs to a dataset as new shards");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("OUT", arguments->convert.output, "The dataset")->required()->check(NotEmpty())->type_name("");
  ConvertArguments& convert = arguments->convert;
  DeclareConvertOptions(*command, convert, ConvertUse::kConvert);
  for (const char* option : kNotHere) {
    if (CLI::Option* known = command->get_option_no_throw(option)) command->remove_option(known);
  }
  for (const auto& [option, names] : DecidedByDataset()) command->get_option(option)->group("");
  command->add_flag("--new-classes", arguments->new_classes,
                    "Classes that OUT does not know get the numbers after its last, in byte order of names");
  command->footer(kFooter);
  command->callback([command, arguments, &status] { RunAppend(*command, *arguments, status); });
}

}  // namespace shardpack::tools
