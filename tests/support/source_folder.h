#pragma once

#include <string>

namespace trainer {

// The folder of the source tree, or what TRAINER_SOURCE_DIR in the environment names in its place,
// without a slash at its end. A function, so that test files do not depend on where the tree lies
// and compilers' caches serve every clone.
std::string SourceFolder();

}  // namespace trainer
