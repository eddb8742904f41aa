// The labels of a request: of one kind, classes numbered.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libshard/pack/plan_file.h"

namespace shardpack {

// Notes labels while inputs are scanned, from any number of threads, and numbers the classes when all are seen: as
// pinned, else as a dataset among the sources has them, else in byte order of the names; so the numbers depend on no
// filter and on no thread. Memory grows with the classes only.
class LabelBook {
 public:
  // Throws Error with kInvalidArgument: a class that stands twice among the pinned ones.
  LabelBook(const PackOptions& options, const PlanBase* base);

  // Any thread. Returns the label as it is kept until Settle(); kList and kFloat: 0. `describe` names the input in
  // messages. Throws Error with kInvalidArgument: another kind than before; a number outside of the pinned classes.
  std::int64_t Note(const SourceLabel& label, const std::function<std::string()>& describe);
  void AddClasses(const std::vector<std::string>& names, bool keep_order);

  // After the scan. The rest from one thread.
  void Settle();
  LabelKind kind() const;
  const std::vector<std::string>& classes() const { return classes_; }
  // Throws Error with kInvalidArgument: a class that is not among the pinned ones. Only now, for an input that filters
  // leave out may be of any class.
  std::int64_t Final(std::int64_t noted, const std::function<std::string()>& describe) const;
  std::vector<std::string> ClassesWithoutInputs() const;

 private:
  static constexpr std::int64_t kUnnumbered = -1;
  struct Class {
    std::string name;
    std::atomic<bool> has_inputs{false};
    std::int64_t number = kUnnumbered;
  };

  void CheckKind(LabelKind kind, const std::function<std::string()>& describe);
  std::int64_t IdOf(std::string_view name);
  std::int64_t Insert(std::string_view name);  // precondition: the lock is held
  [[noreturn]] void ThrowUnknown(std::int64_t noted, const std::function<std::string()>& describe) const;

  static constexpr int kNoKind = -1;
  std::atomic<int> kind_{kNoKind};
  std::string kind_of_;  // who has labels of that kind
  bool pinned_ = false;
  bool base_classes_ = false;

  std::shared_mutex mutex_;
  std::deque<Class> found_;                                 // by id: in the order they were seen
  std::unordered_map<std::string_view, std::int64_t> ids_;  // of the names in found_
  std::vector<std::int64_t> kept_order_;                    // ids whose order is fixed
  std::uint64_t num_known_ = 0;  // classes that were there before the scan: their ids are their numbers
  std::vector<std::string> classes_;
};

}  // namespace shardpack
