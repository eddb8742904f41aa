// Which image libraries this program was built with.
#pragma once

#include <string>

namespace shardpack {

// One line: "libjpeg-turbo 2.1.5, libpng 1.6.39, ...". What other versions write or refuse may differ.
std::string ImageLibraryVersions();

}  // namespace shardpack
