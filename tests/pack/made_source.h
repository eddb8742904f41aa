// Sources made of a list, and plans of them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libshard/pack/plan_builder.h"
#include "libshard/pack/task_arena.h"
#include "shardpack/error.h"
#include "tests/pack/made_tree.h"

namespace shardpack::testing {

struct MadeInput {
  std::string key;
  std::uint64_t size = 10;
  std::string label_text = "c";
  LabelKind kind = LabelKind::kClass;
  std::int64_t number = 0;
  std::string metadata, locator, bad;
};

// Gives its inputs from several threads at once, in no order.
class MadeSource : public Source {
 public:
  MadeSource(std::string name, std::vector<MadeInput> inputs, SourceKind kind = SourceKind::kFolder)
      : name_(std::move(name)), inputs_(std::move(inputs)), kind_(kind) {}

  SourceKind kind() const override { return kind_; }
  void Scan(const std::atomic<bool>*, InputSink& sink) override {
    sink.AddClasses(classes, keep_order);
    sink.AddIgnored(ignored);
    ParallelFor(0, inputs_.size(), 16, [&](std::uint64_t i) { Give(inputs_.size() - 1 - i, sink); });
  }
  bool IsStream() const override { return stream; }
  void Read(const PlannedInput& input, std::byte* to) override {
    ++reads;
    for (std::uint64_t i = 0; i < input.size; ++i) to[i] = static_cast<std::byte>(input.key.size());
  }
  bool IsAsPlanned(const PlannedInput&) override { return true; }
  std::string Describe(const PlannedInput& input) const override {
    return name_ + "/" + std::string(input.SourceKey()) + (input.locator.empty() ? "" : "#") +
           std::string(input.locator);
  }

  std::vector<std::string> classes;
  bool keep_order = false, stream = false;
  std::uint64_t ignored = 0;
  std::atomic<int> reads{0};

 private:
  void Give(std::size_t i, InputSink& sink) {
    const MadeInput& made = inputs_[i];
    FoundInput found;
    found.key = made.key;
    found.size = made.size;
    found.sequence = kind_ == SourceKind::kFolder ? 0 : i;
    found.label = {made.kind, made.number, made.label_text};
    found.metadata = made.metadata;
    found.locator = made.locator;
    found.bad = made.bad;
    if (stream && sink.WantsBytes(made.key)) sink.Sample(made.key, AsBytes(made.key));
    sink.Add(found);
  }

  std::string name_;
  std::vector<MadeInput> inputs_;
  SourceKind kind_;
};

inline std::vector<MadeInput> OfKeys(const std::vector<std::string>& keys) {
  std::vector<MadeInput> inputs;
  for (const std::string& key : keys) inputs.emplace_back().key = key;
  return inputs;
}

// Plans of made sources, in a folder of their own.
struct PlanBench {
  TemporaryFolder folder;
  PackOptions options;
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<SampleRecord> sample;  // that codecs were chosen by

  PlanBench() {
    options.threads = 2;
    options.compression = Compression::kNone;
    fs::create_directories(folder / "scratch");
  }

  MadeSource& Add(const std::string& name, std::vector<MadeInput> inputs, SourceKind kind = SourceKind::kFolder) {
    fs::create_directories(folder / name);
    options.sources.push_back(folder / name);
    auto source = std::make_unique<MadeSource>(name, std::move(inputs), kind);
    MadeSource& made = *source;
    sources.push_back(std::move(source));
    return made;
  }

  fs::path File() const { return folder / "plan"; }

  PlanHead Write(const PlanBase* base = nullptr) {
    SampleWork work;
    work.make_worker = [] {
      return [](Bytes input) { return SampleRecord{Encoding::kBmp, {input.begin(), input.end()}}; };
    };
    work.choose = [this](const std::vector<SampleRecord>& records, std::uint64_t, std::uint64_t) {
      sample = records;
      return CodecPlan{};
    };
    PlanHead head;
    ArenaOf(options.threads).execute([&] {
      head = BuildPlan(options, sources, base, folder / "scratch", File(), work);
    });
    return head;
  }

  std::vector<std::string> Keys() {
    Write();
    std::vector<std::string> keys;
    const Plan plan = Plan::Open(File());
    for (std::uint64_t s = 0; s < plan.num_shards(); ++s) {
      const PlannedShard shard = plan.Shard(s);
      for (const PlannedInput& input : shard.inputs) keys.emplace_back(input.key);
    }
    return keys;
  }
};

}  // namespace shardpack::testing
