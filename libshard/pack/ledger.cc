#include "libshard/pack/ledger.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>

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

std::string LedgerLines(const std::filesystem::path& folder, std::uint64_t lines) {
  const std::filesystem::path path = folder / kLedgerName;
  std::ifstream file(path, std::ios::binary);
  std::string text, line;
  while (lines-- > 0 && std::getline(file, line)) text += line + "\n";
  if (file.bad()) ThrowSystemError(EIO, "read", path.native());
  return text;
}

void WriteLedger(const std::filesystem::path& folder, const std::string& before, const std::vector<BadInput>& bad) {
  const std::filesystem::path target = folder / kLedgerName;
  ReplaceFile(target.native() + ".partial", target, before + LedgerText(bad));
}

void RemoveLedger(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kLedgerName;
  if (unlink(path.c_str()) != 0 && errno != ENOENT) ThrowSystemError(errno, "remove", path.native());
}

}  // namespace shardpack
