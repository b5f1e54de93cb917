#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// The names of classes 0, 1, ..., one in each line of a file; lines may end as Windows ends them.
// Throws kNoInput, kNoPermission, kIo; kData when there are not as many as `classes`.
std::vector<std::string> ReadClassNames(const std::string& path, int64_t classes);

}  // namespace trainer
