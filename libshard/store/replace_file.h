// Putting a small file in place as a whole.
#pragma once

#include <filesystem>
#include <string_view>

namespace shardpack {

// Writes `text` to `partial`, syncs it and renames it to `target`, on the same file system: whoever opens `target`
// finds the old text or the new one. SyncFolder() afterwards. `partial` is made anew: what a link of that name leads
// to is never written. Leaves no `partial` behind where it fails. Throws Error with kIo or kNotFound.
void ReplaceFile(const std::filesystem::path& partial, const std::filesystem::path& target, std::string_view text);

// Makes what was renamed into `folder` outlast a power cut. Throws Error with kIo or kNotFound.
void SyncFolder(const std::filesystem::path& folder);

}  // namespace shardpack
