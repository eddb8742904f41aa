// Plan, run and seal, as Convert() and Append() do them.
#pragma once

#include "libshard/pack/plan_file.h"
#include "shardpack/manifest.h"
#include "shardpack/pack.h"

namespace shardpack {

// Without `base`: Convert(). With it: the inputs become new shards of the dataset that lies in options.output, whose
// manifest the caller read; numbers of shards go on where the dataset's end, its records, statistics and ledger are
// added to, and a revision "append" with the plan's request is written. The options that change content are the
// caller's to take from the manifest (not those of the sources). Keys are looked for with base->has_key once it is
// known that the request is a new one; the same request run again, also after its commit, is "already complete".
//
// Throws as Convert(); kInvalidArgument also where a key is in the dataset already, and where another conversion, or
// another append, into this folder is unfinished; kCorruption where a shard of the dataset is missing.
PackResult Pack(const PackOptions& options, const PlanBase* base);

// Whether `manifest` is what the plan leads to: its dataset was committed, and only the work files are left.
bool IsSealed(const PlanHead& head, const Manifest& manifest);

}  // namespace shardpack
