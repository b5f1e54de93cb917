#include <glog/logging.h>

#include "common/prefetched.h"

namespace trainer {
namespace {

class Data final : public PrefetchedImages {
 public:
  Data(const LayerSpec& spec, const LayerEnv& env)
      : PrefetchedImages(MakePrefetcher(spec, env.reading)) {
    const caffe::DataParameter& param = spec.proto().data_param();
    const bool lmdb = param.backend() == caffe::DataParameter::LMDB;
    LOG(INFO) << "Opened " << (lmdb ? "lmdb " : "leveldb ") << param.source();
  }
};

const RegisterLayer<Data> kData(
    "Data",
    {.text = "Images and labels from an LMDB or LevelDB database of Datum records.\n"
             "In the order of their keys, from the start again after the last. Encoded records "
             "(JPEG, PNG) "
             "are decoded: to 3 channels with force_color, to 1 with force_gray, else as stored.\n"
             "top 0: (batch_size, C, H, W), as transform_param makes them. top 1 (optional): the "
             "labels, (batch_size). A thread reads `prefetch` batches ahead. A snapshot holds the "
             "position.",
     .param = "data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 1, .max_out = 2}});

}  // namespace
}  // namespace trainer
