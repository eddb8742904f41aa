// Which part of a conversion this process does: as --part says, or as the launcher that started it.
#pragma once

#include <string>

#include "shardpack/pack.h"

namespace shardpack::tools {

// "I/N", "auto/N" or "none". Throws UsageError.
Part ParsePart(const std::string& text);

// Of a Slurm step, mpirun or mpiexec with more than one process; else the only part. Throws UsageError where the
// launcher's variables contradict each other.
Part PartOfEnvironment();

}  // namespace shardpack::tools
