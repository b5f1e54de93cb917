#include "support/source_folder.h"

namespace trainer {

std::string SourceFolder() { return TRAINER_SOURCE_DIR; }

}  // namespace trainer
