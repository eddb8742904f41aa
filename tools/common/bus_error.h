// A shard that is cut short, or whose disk fails, while it is mapped.
#pragma once

namespace shardpack::tools {

// From here on, reading a mapped page that is gone ends the program with one line that names the file, and with the
// status of damage, instead of the death by SIGBUS. `program` must live on.
void CatchBusErrors(const char* program);

}  // namespace shardpack::tools
