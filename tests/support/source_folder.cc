#include "support/source_folder.h"

#include <cstdlib>

namespace trainer {

std::string SourceFolder() {
  const char* const moved = std::getenv("TRAINER_SOURCE_DIR");
  return moved != nullptr ? moved : TRAINER_SOURCE_DIR;
}

}  // namespace trainer
