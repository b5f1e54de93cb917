#include <glog/logging.h>

#include "common/prefetched.h"
#include "trainer/base/lower_case.h"

namespace trainer {
namespace {

class Data final : public PrefetchedImages {
 public:
  Data(const LayerSpec& spec, const LayerEnv& env)
      : PrefetchedImages(MakePrefetcher(spec, env.reading)) {
    const caffe::DataParameter& param = spec.proto().data_param();
    LOG(INFO) << "Opened " << LowerCase(caffe::DataParameter::DB_Name(param.backend())) << " "
              << param.source();
  }
};

const RegisterLayer<Data> kData(
    "Data",
    {.text =
         "Images and labels from an LMDB or LevelDB database of Datum records, or from tar "
         "files.\n"
         "In the order of their keys, from the start again after the last. Encoded records "
         "(JPEG, PNG) "
         "are decoded: to 3 channels with force_color, to 1 with force_gray, else as stored.\n"
         "`backend: TAR`: source is a tar file, a pattern (train-{0000..0146}.tar, train-*.tar) "
         "or a text file with a name on each line. Files of one name up to the first dot, one "
         "behind the other, are a sample: 0001.jpg (or .jpeg, .png, .ppm, .pgm) the image, "
         "0001.cls its label, a whole number; other files are passed over. They are read in "
         "their order.\n"
         "`shuffle: true`: another order each epoch, a function of the seed, without random "
         "reads: runs of records are read in a random order, and of what was read the next "
         "shuffle_window records come in any order. Left out, the window is what fits in 64 "
         "MiB; twice as much is held. The keys are read once at the start unless one window "
         "holds all.\n"
         "top 0: (batch_size, C, H, W), as transform_param makes them. top 1 (optional): the "
         "labels, (batch_size). A thread reads `prefetch` batches ahead. A snapshot holds the "
         "position.",
     .param = "data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 1, .max_out = 2}});

}  // namespace
}  // namespace trainer
