// bad_inputs.jsonl: the inputs that were left out, with reasons.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "libshard/pack/journal.h"

namespace shardpack {

// An object a line: key (or key_hex), source (or source_hex), reason, offset (null where unknown).
std::string LedgerText(const std::vector<BadInput>& bad);

// The first lines of FOLDER/bad_inputs.jsonl, or fewer where there are fewer. Throws Error with kIo.
std::string LedgerLines(const std::filesystem::path& folder, std::uint64_t lines);

// Writes FOLDER/bad_inputs.jsonl in one step (a temporary name, synced, renamed): `before` and then those of `bad`.
// Throws Error with kIo.
void WriteLedger(const std::filesystem::path& folder, const std::string& before, const std::vector<BadInput>& bad);

// Removes the ledger of an earlier run, if there is one.
void RemoveLedger(const std::filesystem::path& folder);

}  // namespace shardpack
