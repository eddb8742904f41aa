// The subcommands of shardpack. Each Add function declares its options on `app` and binds a callback that runs the
// command and leaves its exit status (tools/common/exit_status.h) in `status`. Callbacks may throw shardpack::Error;
// RunMain() catches.
#pragma once

#include <CLI/CLI.hpp>

namespace shardpack::tools {

void AddConvert(CLI::App& app, int& status);
void AddPlan(CLI::App& app, int& status);
void AddSeal(CLI::App& app, int& status);
void AddStatus(CLI::App& app, int& status);
void AddVerify(CLI::App& app, int& status);
void AddList(CLI::App& app, int& status);
void AddCat(CLI::App& app, int& status);
void AddExtract(CLI::App& app, int& status);
void AddAppend(CLI::App& app, int& status);
void AddAmend(CLI::App& app, int& status);
void AddRepair(CLI::App& app, int& status);
void AddBatch(CLI::App& app, int& status);

}  // namespace shardpack::tools
