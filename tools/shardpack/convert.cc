#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "libshard/pack/json_text.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "tools/common/codec_table.h"
#include "tools/common/exit_status.h"
#include "tools/common/human.h"
#include "tools/common/progress_bar.h"
#include "tools/common/run_main.h"
#include "tools/shardpack/commands.h"
#include "tools/shardpack/convert_options.h"

namespace shardpack::tools {
namespace {

constexpr std::size_t kShownShards = 10;

void Connect(ProgressBar& bar, PackOptions& options) {
  options.progress = [&bar](const PackProgress& progress) { bar.Show(progress); };
  options.warn = [&bar](const std::string& line) {
    bar.Clear();
    std::fprintf(stderr, "warning: %s\n", line.c_str());
  };
  options.stop = &Stopped();
}

// "1,000 images in 10 classes"; labels need not be classes.
std::string PicturesOf(const Manifest& manifest) {
  std::string text = Counted(manifest.records, "image");
  if (manifest.label_kind == LabelKind::kClass) text += " in " + Counted(manifest.classes.size(), "class");
  return text;
}

void PrintDryRun(const PackResult& result) {
  const Manifest& m = result.manifest;
  std::fprintf(stderr, "would pack %s of %s into %s:\n", PicturesOf(m).c_str(), HumanBytes(m.bytes_in).c_str(),
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

std::string ListOf(const std::vector<std::uint32_t>& numbers) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < numbers.size() && i < kShown; ++i)
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
  return text + (numbers.size() > kShown ? ", ..." : "");
}

void PrintUnsealed(const PackOptions& options, const PackResult& result) {
  std::fprintf(stderr, "%s of %s of all parts are there; missing: %s %s of %u. The last part to end seals, or else: ",
               HumanCount(result.shards_done).c_str(), Counted(result.shards_planned, "shard").c_str(),
               result.missing_parts.size() == 1 ? "part" : "parts", ListOf(result.missing_parts).c_str(),
               options.part.count);
  std::fprintf(stderr, "shardpack seal %s\n", Escaped(options.output.native()).c_str());
}

void PrintPacked(const PackOptions& options, const PackResult& result) {
  const Manifest& m = result.manifest;
  const double rate = result.seconds > 0 ? static_cast<double>(m.records) / result.seconds : 0;
  std::fprintf(stderr, "packed %s into %s: %s in, %s out, %s (%s images/s, %.0f MB/s)%s\n", PicturesOf(m).c_str(),
               Counted(m.shards.size(), "shard").c_str(), HumanBytes(m.bytes_in).c_str(),
               HumanBytes(m.bytes_out).c_str(), HumanSeconds(result.seconds).c_str(),
               HumanCount(static_cast<std::uint64_t>(rate)).c_str(),
               result.seconds > 0 ? static_cast<double>(m.bytes_in) / result.seconds / 1e6 : 0.0,
               result.resumed && options.part.count == 1 ? "; went on with an earlier run's plan" : "");
  if (m.records > 0) std::fputs(CodecTable(m).c_str(), stderr);
  if (!result.sealed) PrintUnsealed(options, result);
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
    PrintPacked(options, result);
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

void SayPart(const PackOptions& options) {
  const Part& part = options.part;
  if (part.count <= 1) return;
  std::fprintf(stderr, "part %u of %u (%s): packing into %s\n", part.index, part.count, part.launcher.c_str(),
               Escaped(options.output.native()).c_str());
}

void SayInterrupted(const PackOptions& options) {
  std::fprintf(stderr, "shardpack: interrupted; finished shards stay%s. Run the same command again to go on.\n",
               options.overwrite ? ", and an older dataset is as it was" : "");
}

// One dataset. Returns whether bad inputs were left out.
bool ConvertOne(const PackOptions& options, const ConvertArguments& arguments, ProgressBar& bar) {
  const bool quiet = arguments.progress == "none" && arguments.json;
  if (!quiet) SayPart(options);
  const PackResult result = Convert(options);
  bar.Clear();
  if (!quiet) PrintSummary(options, result);
  if (arguments.json) PrintJson(options, result);
  // Of a part: they show where it is sealed alone.
  return options.part.count == 1 && result.manifest.bad_inputs > 0;
}

void RunConvert(const CLI::App& command, const ConvertArguments& arguments, int& status) {
  std::vector<PackOptions> all = ToPackOptions(command, arguments);
  ProgressBar bar(ParseProgressStyle(arguments.progress));
  CatchSignals();
  status = kDone;
  for (PackOptions& options : all) {
    Connect(bar, options);
    try {
      if (ConvertOne(options, arguments, bar)) status = kDoneWithBadInputs;
    } catch (const Interrupted&) {
      bar.Clear();
      SayInterrupted(options);
      status = kInterrupted;
      return;
    }
  }
}

void RunPlan(const CLI::App& command, const ConvertArguments& arguments, int& status) {
  std::vector<PackOptions> all = ToPackOptions(command, arguments);
  ProgressBar bar(ParseProgressStyle(arguments.progress));
  CatchSignals();
  for (PackOptions& options : all) {
    Connect(bar, options);
    const PackResult result = MakePlan(options);
    bar.Clear();
    const std::string output = Escaped(options.output.native());
    if (arguments.json) {
      PrintJson(options, result);
    } else if (result.already_complete || options.dry_run) {
      PrintSummary(options, result);
    } else {
      std::fprintf(stderr, "%s %s of %s into %s; shardpack convert with the same options packs them\n",
                   result.resumed ? "the plan is there already:" : "planned", PicturesOf(result.manifest).c_str(),
                   HumanBytes(result.manifest.bytes_in).c_str(), Counted(result.shards_planned, "shard").c_str());
    }
  }
  status = kDone;
}

void AddOne(CLI::App& app, int& status, ConvertUse use) {
  const bool plan = use == ConvertUse::kPlan;
  CLI::App* command = app.add_subcommand(plan ? "plan" : "convert",
                                         plan ? "The first step of convert alone: which input goes into which shard"
                                              : "Pack images into a dataset of shards");
  const auto arguments = std::make_shared<ConvertArguments>();
  DeclareConvertOptions(*command, *arguments, use);
  command->callback([command, arguments, &status, plan] {
    plan ? RunPlan(*command, *arguments, status) : RunConvert(*command, *arguments, status);
  });
}

}  // namespace

void AddConvert(CLI::App& app, int& status) { AddOne(app, status, ConvertUse::kConvert); }
void AddPlan(CLI::App& app, int& status) { AddOne(app, status, ConvertUse::kPlan); }

}  // namespace shardpack::tools
