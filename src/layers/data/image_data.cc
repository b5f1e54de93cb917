#include "data/prefetching_data_layer.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

// Reads the image files of a list: see OpenImageList.
class ImageData final : public PrefetchedImages {
 public:
  ImageData(const LayerSpec& spec, const LayerEnv& env)
      : PrefetchedImages(OpenImageList(spec, env.reading)) {}
};

const RegisterLayer<ImageData> kImageData(
    "ImageData",
    {.text =
         "Images and labels from files named in a list, or from a folder.\n"
         "source: a file with lines 'path label', or 'path label label ...'. The labels are the "
         "numbers at the end of the line, integers or not; all lines must have as many. "
         "root_folder is the prefix of each path, without an added slash. Or source is a folder "
         "with a subfolder for each class: label 0 is the first name in byte order. The log lists "
         "the classes, and 'predict --labels=FOLDER' reads their names.\n"
         "JPEG, PNG, TIFF, binary PGM and PPM; with 16 bits per channel the values are 0 to 255 "
         "with fractions. "
         "new_height and new_width (or short_side) resize. With shuffle, each epoch has its own "
         "order, drawn from the seed and the number of the epoch. Ranks share the images.\n"
         "top 0: (batch_size, C, H, W), transformed by transform_param; C is 3, or 1 with "
         "is_color: false. top 1: the labels, (batch_size), or (batch_size, K) with K labels per "
         "image. A thread reads ahead. A snapshot stores the position.",
     .param = "image_data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 2, .max_out = 2}});

}  // namespace
}  // namespace trainer
