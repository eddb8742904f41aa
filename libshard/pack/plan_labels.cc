#include "libshard/pack/plan_labels.h"

#include <algorithm>
#include <mutex>

#include "libshard/pack/sample_label.h"
#include "shardpack/error.h"

namespace shardpack {

LabelBook::LabelBook(const PackOptions& options, const PlanBase* base) {
  if (base != nullptr) {
    kind_ = static_cast<int>(base->manifest->label_kind);
    kind_of_ = "the dataset";
    base_classes_ = base->manifest->label_kind == LabelKind::kClass;
    pinned_ = base_classes_ && !base->new_classes;
    for (const std::string& name : base->manifest->classes) kept_order_.push_back(Insert(name));
  } else if (options.classes) {
    kind_ = static_cast<int>(LabelKind::kClass);
    kind_of_ = "the list of classes";
    pinned_ = true;
    for (const std::string& name : *options.classes) {
      if (ids_.contains(name)) {
        throw Error(ErrorCode::kInvalidArgument, "class " + Escaped(name) + " stands twice in the list of classes");
      }
      kept_order_.push_back(Insert(name));
    }
  }
  num_known_ = found_.size();
}

std::int64_t LabelBook::Insert(std::string_view name) {
  const auto there = ids_.find(name);
  if (there != ids_.end()) return there->second;
  const auto id = static_cast<std::int64_t>(found_.size());
  found_.emplace_back().name = name;
  ids_.emplace(found_.back().name, id);
  return id;
}

void LabelBook::CheckKind(LabelKind kind, const std::function<std::string()>& describe) {
  if (kind_.load(std::memory_order_acquire) == static_cast<int>(kind)) return;
  const std::unique_lock lock(mutex_);
  if (kind_ == kNoKind) {
    kind_of_ = Escaped(describe());
    kind_.store(static_cast<int>(kind), std::memory_order_release);
  }
  const auto first = static_cast<LabelKind>(kind_.load());
  if (first == kind) return;
  throw Error(ErrorCode::kInvalidArgument, "labels of different kinds: " + kind_of_ + " has " +
                                               std::string(KindInWords(first)) + ", " + Escaped(describe()) + " has " +
                                               std::string(KindInWords(kind)));
}

void LabelBook::ThrowUnknown(std::int64_t noted, const std::function<std::string()>& describe) const {
  throw Error(ErrorCode::kInvalidArgument, "class " + Escaped(found_[static_cast<std::size_t>(noted)].name) + " in " +
                                               Escaped(describe()) +
                                               (base_classes_ ? " is not a class of the dataset; --new-classes adds it"
                                                              : " is not in the list of classes that was given"));
}

std::int64_t LabelBook::IdOf(std::string_view name) {
  const auto note = [&](std::int64_t id) {
    std::atomic<bool>& seen = found_[static_cast<std::size_t>(id)].has_inputs;
    if (!seen.load(std::memory_order_relaxed)) seen.store(true, std::memory_order_relaxed);
    return id;
  };
  {
    const std::shared_lock lock(mutex_);
    const auto there = ids_.find(name);
    if (there != ids_.end()) return note(there->second);
  }
  const std::unique_lock lock(mutex_);
  return note(Insert(name));
}

std::int64_t LabelBook::Note(const SourceLabel& label, const std::function<std::string()>& describe) {
  if (label.kind == LabelKind::kInteger && (pinned_ || base_classes_)) {
    if (label.number >= 0 && static_cast<std::uint64_t>(label.number) < num_known_) {
      const std::shared_lock lock(mutex_);
      found_[static_cast<std::size_t>(label.number)].has_inputs.store(true, std::memory_order_relaxed);
      return label.number;
    }
    throw Error(ErrorCode::kInvalidArgument, Escaped(describe()) + " has the label " + std::to_string(label.number) +
                                                 ", and the classes are numbered from 0 to " +
                                                 std::to_string(static_cast<std::int64_t>(num_known_) - 1));
  }
  CheckKind(label.kind, describe);
  if (label.kind == LabelKind::kClass) return IdOf(label.text);
  return label.kind == LabelKind::kInteger ? label.number : 0;
}

void LabelBook::AddClasses(const std::vector<std::string>& names, bool keep_order) {
  if (pinned_) return;  // a name without inputs does no harm, and one with inputs is seen by Note()
  const std::unique_lock lock(mutex_);
  for (const std::string& name : names) {
    const std::int64_t id = Insert(name);
    if (keep_order) kept_order_.push_back(id);
  }
}

void LabelBook::Settle() {
  if (kind() != LabelKind::kClass) return;
  const auto number = [&](std::int64_t id) {
    Class& found = found_[static_cast<std::size_t>(id)];
    if (found.number != kUnnumbered) return;
    found.number = static_cast<std::int64_t>(classes_.size());
    classes_.push_back(found.name);
  };
  for (const std::int64_t id : kept_order_) number(id);
  if (pinned_) return;
  std::vector<std::int64_t> rest(found_.size());
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = static_cast<std::int64_t>(i);
  std::sort(rest.begin(), rest.end(), [&](std::int64_t a, std::int64_t b) {
    return found_[static_cast<std::size_t>(a)].name < found_[static_cast<std::size_t>(b)].name;
  });
  for (const std::int64_t id : rest) number(id);
}

LabelKind LabelBook::kind() const {
  return kind_ == kNoKind ? LabelKind::kClass : static_cast<LabelKind>(kind_.load());
}

std::int64_t LabelBook::Final(std::int64_t noted, const std::function<std::string()>& describe) const {
  if (kind() != LabelKind::kClass) return noted;
  const std::int64_t number = found_[static_cast<std::size_t>(noted)].number;
  if (number == kUnnumbered) ThrowUnknown(noted, describe);
  return number;
}

std::vector<std::string> LabelBook::ClassesWithoutInputs() const {
  std::vector<const Class*> empty;
  if (kind() == LabelKind::kClass) {
    for (const Class& found : found_) {
      if (!found.has_inputs && found.number != kUnnumbered) empty.push_back(&found);
    }
  }
  std::sort(empty.begin(), empty.end(), [](const Class* a, const Class* b) { return a->number < b->number; });
  std::vector<std::string> names;
  for (const Class* found : empty) names.push_back(found->name);
  return names;
}

}  // namespace shardpack
