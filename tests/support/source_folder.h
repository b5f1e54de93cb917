#pragma once

#include <string>

namespace trainer {

// Returns the folder of the source tree, or TRAINER_SOURCE_DIR of the environment if set, without a
// slash at the end. It is a function so that test files do not depend on the place of the tree and
// compiler caches serve every clone.
std::string SourceFolder();

}  // namespace trainer
