// How two requests differ, in words.
#pragma once

#include <map>
#include <string>

#include "libshard/pack/plan_file.h"

namespace shardpack {

// Of options and name; empty where they do not differ.
std::string DifferenceOfOptions(const std::map<std::string, std::string>& was, const std::string& name_was,
                                const PackOptions& now);
// Of two requests with the same options; empty where they are the same.
std::string DifferenceOfInputs(const std::vector<std::string>& classes_were, const Digest128& request_was,
                               const std::vector<std::string>& classes, const Digest128& request);

// Throws Error with kInvalidArgument where the options cannot be honoured by themselves.
void CheckPackOptions(const PackOptions& options);

}  // namespace shardpack
