#pragma once
// The flags of verbs that show pictures to a net.

#include <string>
#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/config/net_spec.h"
#include "trainer/inference/predict/image_preprocessor.h"

namespace trainer {

std::vector<Flag> PictureFlags();

// The comment in the first lines of a deploy file that says how images are prepared: the first
// begins the line that ends in flags of PictureFlags, the second is the line of a net that takes
// pixels as they are. The third follows flags whose size only the training data would tell.
inline constexpr char kPrepareImages[] = "To prepare images as its training did: trainer classify ";
inline constexpr char kImagesAsTheyAre[] = "Images go in as they are: pixels from 0 to 255";
inline constexpr char kSizeOfTheData[] = " (H,W: the size of the data set's images)";

// What the comment of the net's file says, unless `flags` give the same: --mean and --mean_value
// stand for each other. Logs in one line what it takes from the file. Throws kUsage for values
// that are no sizes or numbers, kConfig at the comment's line where the file has these.
PreprocessOptions PictureOptionsOf(const Flags& flags, const NetSpec& net);

// The words of the command line and then the lines of --list, less a number at the end of a line
// when no file has it in its name: lists of ImageData have labels. Throws as ReadFile, and kData
// for a list without lines.
std::vector<std::string> PicturesOf(const Flags& flags);

}  // namespace trainer
