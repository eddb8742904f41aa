#include "libshard/pack/sample_group.h"

#include <algorithm>

#include "libshard/pack/json_text.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::size_t kMostMembers = 1000;  // of one sample
constexpr std::uint64_t kLargestCls = 64 << 10, kLargestJson = 16 << 20;

std::string Metadata(const std::string& member, const std::optional<LabelledObject>& json) {
  nlohmann::ordered_json object;
  PutBytes(object, "member", member);
  std::string text = object.dump();
  if (json && json->rest != "{}") {
    text.pop_back();
    text += ",\"json\":" + json->rest + '}';
  }
  return text;
}

}  // namespace

SampleGroups::SampleGroups(std::string archive, InputSink& sink, bool offers_bytes)
    : archive_(std::move(archive)), sink_(sink), offers_bytes_(offers_bytes) {}

void SampleGroups::Add(const ArchiveMember& member) {
  const MemberName name = SplitMemberName(member.name);
  if (name.hidden) {
    ++ignored_;
    return;
  }
  if (name.leaves) Fail(LeavesFolder(member.name));
  if (!open_ || name.key != key_) Start(name);
  if (std::find(members_.begin(), members_.end(), name.path) != members_.end()) {
    Fail("duplicate member: " + Escaped(name.path) + " comes twice");
  }
  if (members_.size() == kMostMembers) {
    Fail("more than " + std::to_string(kMostMembers) + " members share the key " + Escaped(key_));
  }
  members_.emplace_back(name.path);
  const std::string extension = LowerCase(name.extension);
  try {
    if (extension == "cls") {
      if (cls_) Fail("the sample " + Escaped(key_) + " has two .cls members");
      cls_ = LabelOfText(ReadText(member, kLargestCls));
    } else if (extension == "json") {
      if (json_) Fail("the sample " + Escaped(key_) + " has two .json members");
      json_ = ParseLabelledObject(ReadText(member, kLargestJson));
    } else if (IsCandidateName(name.path)) {
      AddPicture(member, name);
    } else {
      ++ignored_;
    }
  } catch (const Error& e) {
    if (!e.where().path.empty()) throw;
    Fail(Escaped(name.path) + ": " + e.reason());
  }
}

void SampleGroups::Start(const MemberName& name) {
  CloseGroup();
  if (!seen_.Insert(name.key)) {
    Fail("the sample " + Escaped(name.key) + " is scattered: its member " + Escaped(name.path) +
         " does not stand together with the others");
  }
  open_ = true;
  key_ = name.key;
}

void SampleGroups::AddPicture(const ArchiveMember& member, const MemberName& name) {
  Picture picture;
  picture.member = name.path;
  picture.locator = member.locator;
  picture.size = member.size;
  picture.bad = member.bad.empty() ? TooLarge(member.size) : member.bad;
  picture.sequence = member.sequence;
  picture.plain = name.extension.find('.') == std::string_view::npos;
  if (offers_bytes_ && member.size <= kLargestMember && sink_.WantsBytes(key_)) {
    picture.bytes.emplace(member.size);
    member.read(picture.bytes->data(), member.size);
  }
  pictures_.push_back(std::move(picture));
}

std::string SampleGroups::ReadText(const ArchiveMember& member, std::uint64_t limit) const {
  if (member.size > limit) throw Error(ErrorCode::kBadInput, "is too large for a label");
  std::string text(member.size, '\0');
  member.read(reinterpret_cast<std::byte*>(text.data()), member.size);
  return text;
}

void SampleGroups::CloseGroup() {
  if (!open_) return;
  if (pictures_.empty() && !cls_ && !json_) {
    if (strays_++ == 0) first_stray_ = members_.front();
  } else {
    const std::string sample = "the sample " + Escaped(key_);
    const std::string advice = "; the members of a sample must stand together";
    if (pictures_.empty()) Fail(sample + " has no picture: it is missing beside " + Escaped(members_.front()) + advice);
    if (!cls_ && !json_) {
      Fail(sample + " has no label: a .cls or .json is missing beside " + Escaped(members_.front()) + advice);
    }
    if (!cls_ && !json_->label) Fail(sample + " has no label: its .json has no member \"label\" and there is no .cls");
    Hand(ThePicture());
  }
  open_ = false;
  members_.clear();
  pictures_.clear();
  cls_.reset();
  json_.reset();
}

const SampleGroups::Picture& SampleGroups::ThePicture() const {
  if (pictures_.size() == 1) return pictures_[0];
  const auto is_plain = [](const Picture& picture) { return picture.plain; };
  if (std::count_if(pictures_.begin(), pictures_.end(), is_plain) != 1) {
    const auto& second = pictures_[1];
    Fail("the sample " + Escaped(key_) + " has several pictures, " + Escaped(pictures_[0].member) + " and " +
         Escaped(second.member) + ", and none of them alone has an extension of one part");
  }
  return *std::find_if(pictures_.begin(), pictures_.end(), is_plain);
}

void SampleGroups::Hand(const Picture& picture) {
  ignored_ += pictures_.size() - 1;
  if (picture.bytes) sink_.Sample(key_, *picture.bytes);
  const std::string metadata = Metadata(picture.member, json_);
  FoundInput found;
  found.key = key_;
  found.size = picture.size;
  found.sequence = picture.sequence;
  found.label = cls_ ? cls_->view() : json_->label->view();
  found.metadata = metadata;
  found.locator = picture.locator;
  found.bad = picture.bad;
  sink_.Add(found);
}

void SampleGroups::Finish() {
  CloseGroup();
  sink_.AddIgnored(ignored_);
  if (strays_ == 0) return;
  sink_.Warn(Escaped(archive_) + ": " + std::to_string(strays_) + (strays_ == 1 ? " key has" : " keys have") +
             " neither picture nor label and " + (strays_ == 1 ? "is" : "are") + " left out (" + Escaped(first_stray_) +
             (strays_ > 1 ? ", ...)" : ")"));
}

void SampleGroups::Fail(const std::string& reason) const {
  throw Error(ErrorCode::kBadInput, Location{archive_, {}, {}}, reason);
}

std::string LeavesFolder(std::string_view name) {
  return "the name of the member " + Escaped(name) + " leads out of the folder it would be unpacked in";
}

std::string_view TooLarge(std::uint64_t size) {
  return size > kLargestMember ? "a file of 4 GiB or more" : std::string_view{};
}

}  // namespace shardpack
