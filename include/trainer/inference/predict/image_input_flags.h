#pragma once

#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/inference/predict/image_preprocessor.h"

namespace trainer {

// Holds the values of the flags with the same names, as text. An empty value means that the flag is
// not given.
struct ImageInputFlags {
  std::string list = "";
  std::string resize = "", resize_short = "";
  bool oversample = false;
  std::string mean = "", mean_value = "", raw_scale = "", scale = "";
};

// A comment in the first lines of a deploy file says how to preprocess images. It consists of
// kPreprocessComment and flags of ImageInputFlags, or is kRawPixelsComment. kUnknownSizeNote
// follows the flags if only the training data could give the size. Files of earlier versions begin
// with kOldPreprocessComment.
inline constexpr char kPreprocessComment[] =
    "To prepare images as its training did: trainer predict ";
inline constexpr char kOldPreprocessComment[] =
    "To prepare images as its training did: trainer classify ";
inline constexpr char kRawPixelsComment[] = "Images go in as they are: pixels from 0 to 255";
inline constexpr char kUnknownSizeNote[] = " (H,W: the size of the data set's images)";

// Merges `flags` with the comment in the net's file. A flag overrides the same flag in the comment,
// and --mean and --mean_value count as the same flag. Logs the flags that it takes from the
// comment. Throws kConfig at the comment's line if the comment has a value that is not a size or a
// number, but kUsage for "--resize=H,W" in the comment, whose size is unknown.
ImageInputFlags MergeImageFlags(const ImageInputFlags& flags, const NetSpec& net);

// Returns the values of the flags. With --oversample but no size, resizes images to 256 x 256, as
// Caffe's Python does. Throws kUsage for a value that is not a size or a number.
PreprocessOptions ParseImageFlags(const ImageInputFlags& flags);

// Returns the values of the merged flags. Throws kUsage if a value is not a size or a number, and
// as MergeImageFlags does.
PreprocessOptions ResolvePreprocessOptions(const ImageInputFlags& flags, const NetSpec& net);

// Returns the comment from which MergeImageFlags restores these flags, except --list.
std::string ImageComment(const ImageInputFlags& flags);

}  // namespace trainer
