#include "common/prefetched.h"
#include "trainer/data/image_list.h"

namespace trainer {
namespace {

class ImageData final : public PrefetchedImages {
 public:
  ImageData(const LayerSpec& spec, const LayerEnv& env)
      : PrefetchedImages(MakeImagePrefetcher(spec, env.reading)) {}
};

const RegisterLayer<ImageData> kImageData(
    "ImageData",
    {.text =
         "Images and labels from files named in a list.\n"
         "source: lines 'path label', split at the last space; root_folder is put before each "
         "path as it is written. JPEG, PNG, binary PGM and PPM. new_height and new_width (or "
         "short_side) resize. With shuffle each epoch has an order of its own, drawn from the "
         "seed and the epoch's number. Replicas share the list.\n"
         "top 0: (batch_size, C, H, W), as transform_param makes them, C = 3 or, with is_color: "
         "false, 1. top 1: the labels, (batch_size). A thread reads ahead. A snapshot holds "
         "the position.",
     .param = "image_data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 2, .max_out = 2}});

}  // namespace
}  // namespace trainer
