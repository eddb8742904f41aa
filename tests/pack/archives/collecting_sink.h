// Keeps what a scan finds.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "libshard/pack/source.h"

namespace shardpack::testing {

struct CollectedInput {
  std::string key, metadata, locator, bad, label_text;
  std::uint64_t size = 0, sequence = 0;
  LabelKind label_kind = LabelKind::kClass;
  std::int64_t label_number = 0;

  PlannedInput AsPlanned() const {
    PlannedInput input;
    input.key = key;
    input.size = size;
    input.sequence = sequence;
    input.metadata = metadata;
    input.locator = locator;
    input.bad = bad;
    return input;
  }
};

class CollectingSink : public InputSink {
 public:
  explicit CollectingSink(bool wants_bytes = false) : wants_bytes_(wants_bytes) {}

  void Add(const FoundInput& found) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    CollectedInput input;
    input.key = found.key;
    input.metadata = found.metadata;
    input.locator = found.locator;
    input.bad = found.bad;
    input.label_text = found.label.text;
    input.size = found.size;
    input.sequence = found.sequence;
    input.label_kind = found.label.kind;
    input.label_number = found.label.number;
    inputs.push_back(std::move(input));
  }
  bool WantsBytes(std::string_view) override { return wants_bytes_; }
  void Sample(std::string_view key, Bytes bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    samples[std::string(key)] = AsText(bytes);
  }
  void AddClasses(const std::vector<std::string>& names, bool) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    classes.insert(classes.end(), names.begin(), names.end());
  }
  void AddIgnored(std::uint64_t files) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ignored += files;
  }
  void Warn(const std::string& one_line) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    warnings.push_back(one_line);
  }

  std::vector<CollectedInput> inputs;
  std::map<std::string, std::string> samples;
  std::vector<std::string> classes, warnings;
  std::uint64_t ignored = 0;

 private:
  const bool wants_bytes_;
  std::mutex mutex_;
};

}  // namespace shardpack::testing
