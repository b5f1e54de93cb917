#include "trainer/input/source.h"

#include <algorithm>

#include "trainer/base/text/text.h"
#include "trainer/input/bad_records.h"

namespace trainer {

BatchQueueOptions QueueOptionsOf(const LayerSpec& layer, std::string_view param,
                                 uint32_t batch_size, const InputEnv& env) {
  constexpr uint32_t kMaxDepth = 1024, kMaxBatch = 1u << 24;
  const uint32_t depth = layer.proto().data_param().prefetch();
  if (batch_size < 1 || batch_size > kMaxBatch) {
    layer.FailIn(param, "batch_size",
                 Join("batch_size is ", batch_size, "; it must be 1 to ", kMaxBatch));
  }
  if (depth < 1 || depth > kMaxDepth) {
    layer.FailIn("data_param", "prefetch",
                 Join("prefetch is ", depth, "; it must be 1 to ", kMaxDepth));
  }
  constexpr uint32_t kMostThreads = 256;
  const caffe::DataParameter& data = layer.proto().data_param();
  const uint32_t threads = std::max(data.threads(), data.parser_threads());
  if (threads > kMostThreads) {
    layer.FailIn("data_param", data.threads() == threads ? "threads" : "parser_threads",
                 Join("threads is ", threads, "; it must be at most ", kMostThreads));
  }
  BatchQueueOptions options;
  options.batch_size = batch_size;
  options.depth = depth;
  options.labels = layer.proto().top_size() > 1;
  options.decode_threads = threads > 0 ? static_cast<int>(threads) : env.decode_threads;
  options.memory = env.host_memory;
  options.bytes = env.bytes;
  options.most_bad = MaxBadRecords();
  if (env.phase != caffe::TRAIN) return options;
  options.rank = env.rank;
  options.virtual_ranks = env.virtual_ranks;
  return options;
}

void RequireSampling(const LayerSpec& layer, std::string_view param, caffe::Sampling sampling,
                     caffe::Phase phase) {
  if (sampling != caffe::BALANCED) return;
  if (phase == caffe::TRAIN) {
    if (layer.proto().data_param().limit() == 0) return;
    layer.FailIn(param, "sampling",
                 "sampling: BALANCED cannot be combined with limit (--limit): the first records "
                 "may lack whole classes; remove one of the two");
  }
  layer.FailIn(param, "sampling",
               "sampling: BALANCED repeats records of small classes, and a test must count each "
               "record once; limit this layer to training with include { phase: TRAIN }, and give "
               "the test a layer of its own");
}

}  // namespace trainer
