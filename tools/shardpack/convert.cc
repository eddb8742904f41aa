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
#include "tools/shardpack/commands.h"
#include "tools/shardpack/convert_options.h"

namespace shardpack::tools {
namespace {

constexpr std::size_t kShownShards = 10;

void PrintDryRun(const PackResult& result) {
  const Manifest& m = result.manifest;
  std::fprintf(stderr, "would pack %s of %s in %s into %s:\n", Counted(m.records, "image").c_str(),
               HumanBytes(m.bytes_in).c_str(), Counted(m.classes.size(), "class").c_str(),
               Counted(m.shards.size(), "shard").c_str());
  for (std::size_t s = 0; s < m.shards.size() && s < kShownShards; ++s) {
    std::fprintf(stderr, "  shard %5zu  %12s  %10s\n", s, Counted(m.shards[s].records, "record").c_str(),
                 HumanBytes(m.shards[s].bytes).c_str());
  }
  if (m.shards.size() > kShownShards)
    std::fprintf(stderr, "  ... and %s more\n", HumanCount(m.shards.size() - kShownShards).c_str());
}

void PrintBad(const PackOptions& options, const PackResult& result) {
  const std::uint64_t bad = result.manifest.bad_inputs;
  if (bad == 0) return;
  std::fprintf(stderr, "%s left out, listed in %s\n", Counted(bad, "bad input").c_str(),
               Escaped((options.output / kLedgerName).native()).c_str());
  for (const auto& input : result.first_bad)
    std::fprintf(stderr, "  %s: %s\n", Escaped(input.key).c_str(), Escaped(input.reason).c_str());
  if (!result.first_bad.empty() && bad > result.first_bad.size()) {
    std::fprintf(stderr, "  ... and %s more\n", HumanCount(bad - result.first_bad.size()).c_str());
  }
}

void PrintSummary(const PackOptions& options, const PackResult& result) {
  const Manifest& m = result.manifest;
  const std::string output = Escaped(options.output.native());
  if (result.already_complete) {
    std::fprintf(stderr, "%s is already complete: %s in %s; nothing was touched\n", output.c_str(),
                 Counted(m.records, "record").c_str(), Counted(m.shards.size(), "shard").c_str());
  } else if (options.dry_run) {
    PrintDryRun(result);
  } else {
    const double rate = result.seconds > 0 ? static_cast<double>(m.records) / result.seconds : 0;
    std::fprintf(stderr, "packed %s of %s into %s: %s in, %s out, %s (%s images/s, %.0f MB/s)\n",
                 Counted(m.records, "image").c_str(), Counted(m.classes.size(), "class").c_str(),
                 Counted(m.shards.size(), "shard").c_str(), HumanBytes(m.bytes_in).c_str(),
                 HumanBytes(m.bytes_out).c_str(), HumanSeconds(result.seconds).c_str(),
                 HumanCount(static_cast<std::uint64_t>(rate)).c_str(),
                 result.seconds > 0 ? static_cast<double>(m.bytes_in) / result.seconds / 1e6 : 0.0);
  }
  if (result.ignored_files > 0)
    std::fprintf(stderr, "%s passed over: hidden, or no pictures by their names\n",
                 Counted(result.ignored_files, "file").c_str());
  PrintBad(options, result);
}

void PrintJson(const PackOptions& options, const PackResult& result) {
  const Manifest& m = result.manifest;
  nlohmann::ordered_json out;
  PutBytes(out, "output", options.output.native());
  out["format"] = m.format;
  out["sealed"] = result.sealed;
  out["records"] = m.records;
  out["shards"] = m.shards.size();
  out["classes"] = m.classes.size();
  out["bytes_in"] = m.bytes_in;
  out["bytes_out"] = result.sealed ? nlohmann::ordered_json(m.bytes_out) : nlohmann::ordered_json(nullptr);
  out["bad_inputs"] = m.bad_inputs;
  out["ignored_files"] = result.ignored_files;
  out["seconds"] = result.seconds;
  out["dataset_digest"] =
      result.sealed ? nlohmann::ordered_json(m.dataset_digest.Hex()) : nlohmann::ordered_json(nullptr);
  WriteOut(out.dump() + "\n");
}

void RunConvert(const CLI::App& command, const ConvertArguments& arguments, int& status) {
  PackOptions options = ToPackOptions(command, arguments);
  const bool quiet = arguments.progress == "none";
  ProgressBar bar(ParseProgressStyle(arguments.progress));
  options.progress = [&](const PackProgress& progress) { bar.Show(progress); };
  options.warn = [&](const std::string& line) {
    bar.Clear();
    std::fprintf(stderr, "warning: %s\n", line.c_str());
  };
  options.stop = &Stopped();
  CatchSignals();
  try {
    const PackResult result = Convert(options);
    bar.Clear();
    if (!quiet || !arguments.json) PrintSummary(options, result);
    status = result.manifest.bad_inputs > 0 ? kDoneWithBadInputs : kDone;
    if (arguments.json) PrintJson(options, result);
  } catch (const Interrupted&) {
    bar.Clear();
    std::fprintf(stderr,
                 "shardpack: interrupted; what was unfinished is removed%s. Run the same command again to pack.\n",
                 options.overwrite ? ", an older dataset is as it was" : "");
    status = kInterrupted;
  }
}

}  // namespace

void AddConvert(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("convert", "Pack class folders of images into a dataset of shards");
  const auto arguments = std::make_shared<ConvertArguments>();
  DeclareConvertOptions(*command, *arguments);
  command->callback([command, arguments, &status] { RunConvert(*command, *arguments, status); });
}

}  // namespace shardpack::tools
