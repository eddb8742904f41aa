#include <charconv>
#include <chrono>
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

constexpr std::size_t kShownFaults = 100;

constexpr char kFooter[] =
    R"(Reads every byte: checksums, digests, padding, the index against the records, the manifest against the shards.

Examples:
  shardpack verify packed
  shardpack verify packed --decode                     decode each image as well
  shardpack verify packed/shard-00000-5f3a9c01.shard   one shard
  shardpack verify packed --budget 60s                 a sample, as large as a minute allows, and what it says of the rest

Exit status: 0 no damage found, 3 damage found.)";

struct Arguments {
  std::string dataset, progress = "auto";
  std::string budget;
  bool decode = false, json = false;
  int threads = 0;
};

std::string FaultLine(const VerifyFault& fault) {
  std::string line = Escaped(fault.shard);
  if (fault.record) line += ": record " + std::to_string(*fault.record);
  if (fault.key) line += " (" + Escaped(*fault.key) + ")";
  if (fault.record || fault.offset > 0) line += " at byte " + std::to_string(fault.offset);
  return line + ": " + fault.message;
}

nlohmann::ordered_json FaultJson(const VerifyFault& fault) {
  nlohmann::ordered_json out;
  PutBytes(out, "shard", fault.shard);
  out["record"] = fault.record ? nlohmann::ordered_json(*fault.record) : nlohmann::ordered_json(nullptr);
  if (fault.key) {
    PutBytes(out, "key", *fault.key);
  } else {
    out["key"] = nullptr;
  }
  out["offset"] = fault.offset;
  out["kind"] = fault.kind;
  out["message"] = Escaped(fault.message);
  return out;
}

void PrintJson(const VerifyResult& result) {
  nlohmann::ordered_json out;
  out["records"] = result.records;
  out["bytes"] = result.bytes;
  out["ok"] = result.faults.empty();
  out["faults"] = nlohmann::ordered_json::array();
  for (const VerifyFault& fault : result.faults) out["faults"].push_back(FaultJson(fault));
  if (result.sample) {
    out["sample"] = {{"records", result.sample->records},
                     {"of", result.sample->of},
                     {"damaged", result.sample->damaged},
                     {"confidence", result.sample->confidence},
                     {"damaged_share_bound", result.sample->damaged_share_bound}};
  }
  WriteOut(out.dump() + "\n");
}

// "60s", "500ms", "5min", "2h"; seconds without a unit.
std::chrono::nanoseconds ParseBudget(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1e6}, {"min", 60e9}, {"h", 3600e9}, {"s", 1e9}, {"", 1e9}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, nanoseconds] : kUnits) {
    if (error == std::errc() && unit == name && value > 0 && value * nanoseconds < 1e18)
      return std::chrono::nanoseconds(static_cast<std::int64_t>(value * nanoseconds));
  }
  throw UsageError{"--budget: '" + Escaped(text) + "' is no time such as 60s, 500ms, 5min or 2h"};
}

std::string SampleText(const VerifyResult::Sample& sample) {
  if (sample.records == sample.of) return "that is every record\n";
  char share[64];
  std::snprintf(share, sizeof share, "%.3g", sample.damaged_share_bound * 100);
  return "a sample of " + HumanCount(sample.records) + " of " + HumanCount(sample.of) + " records, " +
         HumanCount(sample.damaged) + " damaged: with 95 % confidence at most " + share + " % of all are\n";
}

void PrintResult(const VerifyResult& result, double seconds) {
  std::string text;
  for (std::size_t f = 0; f < result.faults.size() && f < kShownFaults; ++f) text += FaultLine(result.faults[f]) + "\n";
  if (result.faults.size() > kShownFaults)
    text += "... and " + HumanCount(result.faults.size() - kShownFaults) + " more (--json lists all)\n";
  text += Counted(result.records, "record") + ", " + HumanBytes(result.bytes) + ": ";
  text += result.faults.empty() ? "no damage found" : Counted(result.faults.size(), "fault") + " found";
  char rate[64];
  std::snprintf(rate, sizeof rate, " (%s, %.0f MB/s)\n", HumanSeconds(seconds).c_str(),
                seconds > 0 ? static_cast<double>(result.bytes) / seconds / 1e6 : 0.0);
  text += rate;
  if (result.sample) text += SampleText(*result.sample);
  WriteOut(text);
}

void RunVerify(const Arguments& arguments, int& status) {
  ProgressBar bar(ParseProgressStyle(arguments.progress));
  VerifyOptions options;
  options.decode = arguments.decode;
  options.limits.max_pixels = ~std::uint64_t{0} >> 8;  // what was packed under a higher limit is no damage
  options.threads = arguments.threads;
  if (!arguments.budget.empty()) options.budget = ParseBudget(arguments.budget);
  options.progress = [&](const PackProgress& progress) { bar.Show(progress); };
  options.stop = &Stopped();
  CatchSignals();
  const auto start = std::chrono::steady_clock::now();
  const VerifyResult result = Verify(arguments.dataset, options);
  bar.Clear();
  status = result.faults.empty() ? kDone : kDamage;
  if (arguments.json) {
    PrintJson(result);
  } else {
    PrintResult(result, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}

}  // namespace

void AddVerify(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("verify", "Check every byte of a dataset or shard");
  const auto arguments = std::make_shared<Arguments>();
  command->footer(kFooter);
  AddDatasetOption(*command, arguments->dataset);
  command->add_flag("--decode", arguments->decode, "Decode each image as well");
  command
      ->add_option("--budget", arguments->budget,
                   "Look at records spread over the whole dataset for so long, instead of all of it")
      ->check(NotEmpty())
      ->type_name("TIME");
  command->add_option("--threads", arguments->threads, "Threads; else all that this process may use")
      ->check(WholeNumber(1, 4096))
      ->type_name("N");
  AddProgressOption(*command, arguments->progress);
  command->add_flag("--json", arguments->json, "The result as one line of JSON");
  command->callback([arguments, &status] { RunVerify(*arguments, status); });
}

}  // namespace shardpack::tools
