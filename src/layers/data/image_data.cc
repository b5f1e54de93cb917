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
         "Images and labels from files named in a list.\n"
         "source: lines 'path label', split at the last space; root_folder is the prefix of each "
         "path, without an added slash. JPEG, PNG, binary PGM and PPM. new_height and new_width "
         "(or short_side) resize. With shuffle, each epoch has its own order, drawn from the seed "
         "and the number of the epoch. Ranks share the list.\n"
         "top 0: (batch_size, C, H, W), transformed by transform_param; C is 3, or 1 with "
         "is_color: false. top 1: the labels, (batch_size). A thread reads ahead. A snapshot "
         "stores the position.",
     .param = "image_data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 2, .max_out = 2}});

}  // namespace
}  // namespace trainer
