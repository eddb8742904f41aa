// The options a dataset was made with, out of its manifest.
#pragma once

#include <map>
#include <string>

#include "shardpack/pack.h"

namespace shardpack {

// Sets those options in `options` that say what becomes of an input (pictures, compression, size of shards, statistics,
// checks), as ContentOptions() wrote them; how sources are read stays the caller's. Throws Error with kUnsupported for
// a value this program does not know.
void TakeContentOptions(const std::map<std::string, std::string>& written, PackOptions& options);

// Whether an option of that name in ContentOptions() is one of those.
bool IsContentOption(const std::string& name);

}  // namespace shardpack
