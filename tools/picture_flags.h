#pragma once
// The flags of verbs that show pictures to a net.

#include <string>
#include <vector>

#include "flags.h"
#include "trainer/predict/pictures.h"

namespace trainer {

std::vector<Flag> PictureFlags();

// Throws kUsage for values that are no sizes or numbers.
PictureOptions PictureOptionsOf(const Flags& flags);

// The words of the command line and then the lines of --list, less a number at the end of a line
// when no file has it in its name: lists of ImageData have labels. Throws as ReadFile, and kData
// for a list without lines.
std::vector<std::string> PicturesOf(const Flags& flags);

}  // namespace trainer
