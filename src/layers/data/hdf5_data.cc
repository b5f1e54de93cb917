#include "data/prefetching_data_layer.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

// Reads rows of arrays from the HDF5 files of a list: see OpenHdf5Rows.
class Hdf5Data final : public PrefetchingDataLayer {
 public:
  Hdf5Data(const LayerSpec& spec, const LayerEnv& env)
      : PrefetchingDataLayer(OpenHdf5Rows(spec, env.reading)) {}
};

const RegisterLayer<Hdf5Data> kHdf5Data(
    "HDF5Data",
    {.text =
         "Rows of arrays from HDF5 files.\n"
         "source lists the files. Each top (batch_size, ...) is the dataset with the name of the "
         "top: floats or integers of shape (rows, ...). All datasets of a file need the same "
         "number of rows. After the last file, the first file follows again. shuffle draws a new "
         "order of the files, and of the rows of each file, in every epoch, from random_seed. A "
         "thread reads ahead. A snapshot stores the position.",
     .param = "hdf5_data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 1, .max_out = -1}});

}  // namespace
}  // namespace trainer
