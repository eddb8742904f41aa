// Serves a source as the library reads it to archives_test.py and sources_test.py: one JSON object a line.
//
//   source_probe auto|folder|csv|jsonl|dataset|tar|zip|tfrecord PATH [--image NAME] [--label NAME] [--change PATH2]
//                [--path-column NAME] [--label-column NAME]
//
// --change: between scan and reading the file is replaced by this one.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "libshard/store/text.h"
#include "shardpack/error.h"
#include "tests/pack/archives/collecting_sink.h"

namespace shardpack::testing {
namespace {

using nlohmann::ordered_json;

std::unique_ptr<Source> OpenAs(const std::string& kind, const std::string& path, PackOptions options) {
  static const std::map<std::string, SourceKind> kKinds = {
      {"auto", SourceKind::kAuto},   {"folder", SourceKind::kFolder},    {"csv", SourceKind::kCsv},
      {"jsonl", SourceKind::kJsonl}, {"dataset", SourceKind::kDataset},  {"tar", SourceKind::kTar},
      {"zip", SourceKind::kZip},     {"tfrecord", SourceKind::kTfrecord}};
  options.from = kKinds.at(kind);
  options.sources = {path};
  return std::move(OpenSources(options).at(0));
}

std::string ReadOne(Source& source, const CollectedInput& input, std::string& error) {
  if (!input.bad.empty()) return {};
  std::string bytes(input.size, '\0');
  try {
    source.Read(input.AsPlanned(), reinterpret_cast<std::byte*>(bytes.data()));
  } catch (const Error& e) {
    error = e.what();
  }
  return bytes;
}

// Streams in order, and the first once more at the end; others from four threads, last first.
std::vector<std::string> ReadAll(Source& source, const std::vector<CollectedInput>& inputs,
                                 std::vector<std::string>& errors) {
  std::vector<std::string> bytes(inputs.size());
  errors.resize(inputs.size());
  if (source.IsStream()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) bytes[i] = ReadOne(source, inputs[i], errors[i]);
    if (!inputs.empty() && errors[0].empty() && ReadOne(source, inputs[0], errors[0]) != bytes[0]) {
      errors[0] = "another content when read again";
    }
    return bytes;
  }
  constexpr std::size_t kThreads = 4;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t k = t; k < inputs.size(); k += kThreads) {
        const std::size_t i = inputs.size() - 1 - k;
        bytes[i] = ReadOne(source, inputs[i], errors[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return bytes;
}

int Serve(int argc, char** argv) {
  PackOptions options;
  std::string change;
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--image") options.image_feature = argv[i + 1];
    if (name == "--label") options.label_feature = argv[i + 1];
    if (name == "--change") change = argv[i + 1];
    if (name == "--path-column") options.path_column = argv[i + 1];
    if (name == "--label-column") options.label_column = argv[i + 1];
  }
  const std::string path = argv[2];
  const auto source = OpenAs(argv[1], path, options);
  CollectingSink sink(true);
  source->Scan(nullptr, sink);
  if (!change.empty()) std::filesystem::rename(change, path);
  // A run that goes on with a plan opens the source anew and does not scan.
  const auto again = OpenAs(argv[1], path, options);
  std::vector<std::string> errors;
  const auto bytes = ReadAll(*again, sink.inputs, errors);
  for (std::size_t i = 0; i < sink.inputs.size(); ++i) {
    const CollectedInput& input = sink.inputs[i];
    ordered_json line;
    line["key_hex"] = ToHex(input.key);
    line["sequence"] = input.sequence;
    line["label_kind"] = Name(input.label_kind);
    line["label_hex"] = ToHex(input.label_text);
    line["label_number"] = input.label_number;
    line["metadata_hex"] = ToHex(input.metadata);
    line["bad"] = input.bad;
    line["content_hex"] = ToHex(bytes[i]);
    line["error"] = errors[i];
    line["as_planned"] = again->IsAsPlanned(input.AsPlanned());
    line["described_hex"] = ToHex(again->Describe(input.AsPlanned()));
    const auto sample = sink.samples.find(input.key);
    if (sample != sink.samples.end()) line["sample_is_content"] = sample->second == bytes[i];
    std::cout << line.dump() << '\n';
  }
  ordered_json last;
  last["stream"] = source->IsStream();
  last["ignored"] = sink.ignored;
  last["warnings"] = sink.warnings;
  for (const std::string& name : sink.classes) last["classes"].push_back(ToHex(name));
  std::cout << last.dump() << '\n';
  return 0;
}

}  // namespace
}  // namespace shardpack::testing

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    return shardpack::testing::Serve(argc, argv);
  } catch (const shardpack::Error& e) {
    std::cerr << e.what() << '\n';
    return 3;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
