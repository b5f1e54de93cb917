#include "common/prefetched.h"
#include "trainer/data/hdf5_rows.h"

namespace trainer {
namespace {

class Hdf5Data final : public Prefetched {
 public:
  Hdf5Data(const LayerSpec& spec, const LayerEnv& env)
      : Prefetched(MakeRowPrefetcher(spec, env.reading)) {}
};

const RegisterLayer<Hdf5Data> kHdf5Data(
    "HDF5Data",
    {.text =
         "Rows of arrays from HDF5 files.\n"
         "source lists the files. Each top is the dataset of the top's name, floats or whole "
         "numbers of any shape (rows, ...), as (batch_size, ...); all datasets of a file have "
         "as many rows. After the last file comes the first again. shuffle draws a new order of "
         "the files and of each file's rows every epoch, from random_seed. A thread reads "
         "ahead, in pieces. A snapshot holds the position.",
     .param = "hdf5_data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 1, .max_out = -1}});

}  // namespace
}  // namespace trainer
