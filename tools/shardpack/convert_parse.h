// Values of convert's options, one function each. All throw UsageError that names option and value.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "shardpack/pack.h"

namespace shardpack::tools {

SourceKind ParseFrom(const std::string& text);
void ParseOrder(const std::string& text, PackOptions& options);  // name, source, shuffled[:SEED]
std::vector<KeyShare> ParseSplit(const std::string& text);       // NAME=0.9,NAME=0.1
void ParseFormat(const std::string& format, const std::string& hdf5_layout);
ImageMode ParseImages(const std::string& text);
ResizeTo ParseResize(const std::string& text);                         // SHORT or WxH
void ParseCompression(const std::string& text, PackOptions& options);  // auto, none, zstd[:LEVEL], archive
void ParseDictionary(const std::string& text, PackOptions& options);   // auto, none, SIZE
void ParseMaxBad(const std::string& text, PackOptions& options);       // N or P%
std::vector<std::string> ReadClasses(const std::filesystem::path& path);

}  // namespace shardpack::tools
