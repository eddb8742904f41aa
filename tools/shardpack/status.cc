#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "libshard/pack/json_text.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "tools/common/exit_status.h"
#include "tools/common/human.h"
#include "tools/common/run_main.h"
#include "tools/common/table.h"
#include "tools/common/validators.h"
#include "tools/shardpack/commands.h"

namespace shardpack::tools {
namespace {

constexpr char kFooter[] =
    R"(What is done, running and missing of a conversion, over all its parts. Changes nothing.

Examples:
  shardpack status /shared/packed
  shardpack status /shared/packed --json

Exit status: 0, also where shards are missing; 2 nothing is packed into OUT; 3 the dataset in OUT is damaged.)";

struct Arguments {
  std::string output;
  bool json = false;
};

void PrintJson(const Arguments& arguments, const PackStatus& state) {
  nlohmann::ordered_json out;
  PutBytes(out, "output", arguments.output);
  out["sealed"] = state.sealed;
  out["planned"] = state.planned;
  out["planning"] = state.planning;
  out["shards"] = state.shards;
  out["shards_done"] = state.shards_done;
  out["inputs"] = state.inputs;
  out["inputs_done"] = state.inputs_done;
  out["bytes"] = state.bytes;
  out["bytes_done"] = state.bytes_done;
  out["bad_inputs"] = state.bad_inputs;
  out["parts"] = nlohmann::ordered_json::array();
  for (const auto& part : state.parts) {
    out["parts"].push_back({{"part", part.index},
                            {"of", part.count},
                            {"running", part.running},
                            {"where", part.where},
                            {"shards", part.shards},
                            {"shards_done", part.shards_done}});
  }
  out["missing"] = state.missing;
  WriteOut(out.dump() + "\n");
}

// "0-3, 7, 9-12"
std::string RunsOf(const std::vector<std::uint64_t>& numbers) {
  constexpr std::size_t kShownRuns = 12;
  std::string text;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (++runs > kShownRuns) return text + ", ...";
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (end > i + 1) text += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

std::string PartsTable(const PackStatus& state) {
  if (state.parts.empty()) return "";
  Table table({{"part", Align::kLeft},
               {"of", Align::kRight},
               {"shards done", Align::kRight},
               {"state", Align::kLeft},
               {"last at work", Align::kLeft}});
  for (const auto& part : state.parts) {
    const bool done = state.planned && part.shards_done == part.shards;
    table.Add({std::to_string(part.index), std::to_string(part.count),
               HumanCount(part.shards_done) + " of " + HumanCount(part.shards),
               part.running ? "running"
               : done       ? "done"
                            : "stopped",
               part.where.empty() ? "-" : part.where});
  }
  return table.Text();
}

void PrintText(const Arguments& arguments, const PackStatus& state) {
  const std::string output = Escaped(arguments.output);
  std::string text;
  if (state.sealed && !state.planned) {
    text = output + " is complete: " + Counted(state.inputs - state.bad_inputs, "record") + " in " +
           Counted(state.shards, "shard") + "\n";
  } else if (!state.planned) {
    text = output + (state.planning ? ": a process is making the plan\n"
                                    : ": there is no plan, and nobody makes one: run shardpack convert again\n");
  } else {
    text = output + ": " + HumanCount(state.shards_done) + " of " + Counted(state.shards, "shard") + ", " +
           HumanCount(state.inputs_done) + " of " + Counted(state.inputs, "input") + ", " +
           HumanBytes(state.bytes_done) + " of " + HumanBytes(state.bytes) + "; " +
           Counted(state.bad_inputs, "bad input") + "\n";
  }
  text += PartsTable(state);
  if (!state.missing.empty()) {
    text += "missing, and nobody at work on: " + std::string(state.missing.size() == 1 ? "shard " : "shards ") +
            RunsOf(state.missing) + "\n";
  } else if (state.planned && state.shards_done == state.shards && !state.sealed) {
    text += "all shards are there: shardpack seal " + output + "\n";
  }
  WriteOut(text);
}

}  // namespace

void AddStatus(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("status", "What of a conversion is done, running and missing");
  const auto arguments = std::make_shared<Arguments>();
  command->footer(kFooter);
  command->add_option("OUT", arguments->output, "The folder that is packed into")
      ->required()
      ->check(NotEmpty())
      ->type_name("");
  command->add_flag("--json", arguments->json, "One line of JSON");
  command->callback([arguments, &status] {
    const PackStatus state = Status(arguments->output);
    arguments->json ? PrintJson(*arguments, state) : PrintText(*arguments, state);
    status = kDone;
  });
}

}  // namespace shardpack::tools
