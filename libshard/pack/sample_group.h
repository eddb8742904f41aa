// WebDataset's rules: members of an archive that share a key are one sample.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/pack/key_set.h"
#include "libshard/pack/member_name.h"
#include "libshard/pack/sample_label.h"
#include "libshard/pack/source.h"

namespace shardpack {

// A member as it is met.
struct ArchiveMember {
  std::string_view name;
  std::uint64_t size = 0;
  std::uint64_t sequence = 0;
  std::string_view locator;  // for Read(), should it be the picture of a sample
  // Reads its first `size` bytes, or all; at most once, before the next member.
  std::function<void(std::byte* to, std::uint64_t size)> read;
  // Why it is of no use as a picture, as the archive's directory says already; else empty. Lives as long as the
  // archive.
  std::string_view bad = {};
};

// Puts samples together from members in the archive's order and hands them to a sink. Refused for the whole archive,
// with Error of kBadInput that names archive and member: a member or key that comes twice, a sample without picture or
// label, of two pictures of which none is plainly the one, a label that cannot be read.
class SampleGroups {
 public:
  // `archive`: as the user named it. `offers_bytes`: pictures are handed over where the sink wants them for its sample,
  // as they can be read in order only.
  SampleGroups(std::string archive, InputSink& sink, bool offers_bytes);

  void Add(const ArchiveMember& member);
  void AddOther(std::uint64_t count) { ignored_ += count; }  // links
  void Finish();

 private:
  struct Picture {
    std::string member, locator;
    std::string_view bad;
    std::uint64_t size = 0, sequence = 0;
    bool plain = false;  // its extension has one part: "jpg", not "seg.png"
    std::optional<std::vector<std::byte>> bytes;
  };

  void Start(const MemberName& name);
  void AddPicture(const ArchiveMember& member, const MemberName& name);
  std::string ReadText(const ArchiveMember& member, std::uint64_t limit) const;
  void CloseGroup();
  const Picture& ThePicture() const;
  void Hand(const Picture& picture);
  [[noreturn]] void Fail(const std::string& reason) const;

  std::string archive_;
  InputSink& sink_;
  const bool offers_bytes_;
  KeySet seen_;

  // The sample that is being put together.
  bool open_ = false;
  std::string key_;
  std::vector<std::string> members_;
  std::vector<Picture> pictures_;
  std::optional<OwnedLabel> cls_;
  std::optional<LabelledObject> json_;

  std::uint64_t ignored_ = 0, strays_ = 0;
  std::string first_stray_;
};

// Thrown names of a member that would leave the folder it is unpacked in.
std::string LeavesFolder(std::string_view name);

// Above this size an input can be no record.
inline constexpr std::uint64_t kLargestMember = 0xffffffff;
// FoundInput::bad for one that is larger; empty for others.
std::string_view TooLarge(std::uint64_t size);

}  // namespace shardpack
