#include "libshard/pack/ledger.h"

#include <unistd.h>

#include <cerrno>

#include "libshard/pack/json_text.h"
#include "libshard/store/replace_file.h"
#include "shardpack/error.h"
#include "shardpack/manifest.h"

namespace shardpack {

std::string LedgerText(const std::vector<BadInput>& bad) {
  std::string text;
  for (const BadInput& input : bad) {
    nlohmann::ordered_json line;
    PutBytes(line, "key", input.key);
    PutBytes(line, "source", input.source);
    line["reason"] = Escaped(input.reason);
    line["offset"] = input.offset ? nlohmann::ordered_json(*input.offset) : nlohmann::ordered_json(nullptr);
    text += line.dump() + "\n";
  }
  return text;
}

void WriteLedger(const std::filesystem::path& folder, const std::vector<BadInput>& bad) {
  const std::filesystem::path target = folder / kLedgerName;
  ReplaceFile(target.native() + ".partial", target, LedgerText(bad));
}

void RemoveLedger(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kLedgerName;
  if (unlink(path.c_str()) != 0 && errno != ENOENT) ThrowSystemError(errno, "remove", path.native());
}

}  // namespace shardpack
