// How records were compressed, as a table for people.
#pragma once

#include <string>

#include "shardpack/manifest.h"

namespace shardpack::tools {

// A row a codec: share of the records, bytes before and after, what was saved, and the time to decode a record. The
// last is that of the receipts; "-" where there is none.
std::string CodecTable(const Manifest& manifest);

// A row a receipt: what each encoding of the planned sample gained, and was chosen for. Empty where there is none.
std::string ReceiptTable(const Manifest& manifest);

}  // namespace shardpack::tools
