#include <glog/logging.h>

#include "data/prefetching_data_layer.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

// Reads images and labels from a database or tar files. The constructor opens the source and logs
// the line that Caffe logs.
class Data final : public PrefetchedImages {
 public:
  Data(const LayerSpec& spec, const LayerEnv& env)
      : PrefetchedImages(OpenDatabase(spec, env.reading)) {
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
         "Records are read in the order of their keys; after the last one, the first one follows "
         "again. Encoded records (JPEG, PNG) are decoded: to 3 channels with force_color, to 1 "
         "with force_gray, else as stored.\n"
         "`backend: TAR`: source is a tar file, a pattern (train-{0000..0146}.tar, train-*.tar) "
         "or a text file with a name on each line. A sample is a group of consecutive files with "
         "the same name up to the first dot: the image 0001.jpg (or .jpeg, .png, .tif, .tiff, "
         ".ppm, .pgm), and 0001.cls with its label, an integer. Without it, 0001.json (a number, "
         "a list of numbers, or an object whose member 'label' is one of both) or 0001.npy has the "
         "labels; files of more than 64 KiB or 4096 numbers have none. Other files are skipped. "
         "Samples are read in their order.\n"
         "`shuffle: true`: each epoch has another order, which depends on the seed only. To avoid "
         "random reads, blocks of records are read in a random order, and the records in a window "
         "of shuffle_window records are shuffled. The default window is 64 MiB of records; the "
         "memory is twice as much. The keys are read once at the start, unless one window "
         "contains all records.\n"
         "top 0: (batch_size, C, H, W), transformed by transform_param. top 1 (optional): the "
         "labels, (batch_size), or (batch_size, K) if records have K labels. A thread reads "
         "`prefetch` batches ahead. A snapshot stores the position.",
     .param = "data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 1, .max_out = 2}});

}  // namespace
}  // namespace trainer
