#include <glog/logging.h>

#include "trainer/base/text.h"
#include "trainer/config/named_file.h"
#include "trainer/data/hdf5_rows.h"
#include "trainer/layers/items.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

constexpr char kParam[] = "hdf5_data_param";

Hdf5RowsOptions ReadOptions(const LayerSpec& spec, const LayerEnv& env) {
  constexpr uint32_t kMaxBatch = 1u << 24;
  const caffe::HDF5DataParameter& param = spec.proto().hdf5_data_param();
  if (spec.proto().has_transform_param()) {
    spec.Fail("transform_param",
              "rows of HDF5 files are used as they are; leave transform_param out and store the "
              "numbers as the net shall see them");
  }
  if (param.source().empty()) {
    spec.FailIn(kParam, "source", "source, the list of HDF5 files, is missing");
  }
  if (param.batch_size() < 1 || param.batch_size() > kMaxBatch) {
    spec.FailIn(kParam, "batch_size",
                Join("batch_size is ", param.batch_size(), "; it must be 1 to ", kMaxBatch));
  }
  Hdf5RowsOptions options;
  options.datasets.assign(spec.proto().top().begin(), spec.proto().top().end());
  options.batch_size = param.batch_size();
  options.shuffle = param.shuffle();
  options.key = env.key;
  if (env.phase == caffe::TRAIN) options.replica = env.replica;
  return options;
}

Hdf5Rows OpenRows(const LayerSpec& spec, const LayerEnv& env) {
  Hdf5RowsOptions options = ReadOptions(spec, env);
  return ReadNamedFile(spec, kParam, "source", spec.proto().hdf5_data_param().source(),
                       [&](const std::string& list) {
                         options.list = list;
                         LOG(INFO) << "Loading list of HDF5 filenames from: " << list;
                         return Hdf5Rows(options);
                       });
}

class Hdf5Data final : public Layer, public NamesItems {
 public:
  Hdf5Data(const LayerSpec& spec, const LayerEnv& env) : rows_(OpenRows(spec, env)) {
    LOG(INFO) << "Number of HDF5 files: " << rows_.num_files();
  }

  void Describe(DescribeContext& plan) override {
    for (int i = 0; i < plan.NumOut(); ++i) plan.Out(i, rows_.shape(i));
  }

  void Forward(const RunContext& run) override {
    const RowBatch& batch = rows_.Next();
    for (int i = 0; i < run.NumOut(); ++i) {
      run.device().CopyToDevice(run.Out(i).data, batch.outputs[static_cast<size_t>(i)].data(),
                                run.Out(i).Bytes());
    }
  }

  std::string SaveState() const override { return rows_.position().Encode(); }
  void RestoreState(const std::string& state) override { rows_.Restore(Position::Decode(state)); }
  std::string NameOfItem(int64_t item) override { return rows_.NameOfItem(item); }
  const WaitCounters* Waits() const override { return &rows_.counters(); }

 private:
  Hdf5Rows rows_;
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
     .param = kParam,
     .arity = {.min_in = 0, .max_in = 0, .min_out = 1, .max_out = -1}});

}  // namespace
}  // namespace trainer
