// What of a plan is done.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "libshard/pack/journal.h"
#include "libshard/pack/plan_file.h"

namespace shardpack {

class WorkFolder;

// The journal's word for shard s of the plan (counted from 0), where the shard's file is there with the size that it
// says.
std::optional<FinishedShard> FinishedOf(const std::filesystem::path& output, const Plan& plan, std::uint64_t s);

// Whether what the plan leads to was committed, and only the work files are left. Never throws: what cannot be read is
// no proof.
bool IsCommitted(const WorkFolder& work) noexcept;
bool IsCommitted(const std::filesystem::path& output, const Plan& plan, const Manifest& manifest);

}  // namespace shardpack
