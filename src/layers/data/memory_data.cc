#include "data/prefetching_data_layer.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

// Reads raw images from one file or the standard input. Without a source it is Caffe's placeholder
// for data from a calling program: the net can be planned, but Forward throws kConfig, and
// data_layer() is null.
class MemoryData final : public PrefetchingDataLayer {
 public:
  MemoryData(const LayerSpec& spec, const LayerEnv& env)
      : PrefetchingDataLayer(OpenMemory(spec, env.reading)),
        spec_(spec),
        has_source_(!spec.proto().memory_data_param().source().empty()) {}

  void Setup(SetupContext& ctx) override {
    PrefetchingDataLayer::Setup(ctx);
    ctx.OutputKeepsF32(1);
  }

  void Forward(const RunContext& run) override {
    if (has_source_) return PrefetchingDataLayer::Forward(run);
    spec_.Fail(
        "MemoryData has no source, and only a program that calls Caffe as a library can fill it, "
        "so you can plan this net but not run it; give memory_data_param a source, use Data or "
        "ImageData to read images from the disk, or use Input for a net without data");
  }

  DataLayer* data_layer() override {
    return has_source_ ? PrefetchingDataLayer::data_layer() : nullptr;
  }

 private:
  LayerSpec spec_;
  bool has_source_;
};

const RegisterLayer<MemoryData> kMemoryData(
    "MemoryData",
    {.text = "Images of one file that is kept in memory, or a placeholder for data from a "
             "program.\n"
             "source: bytes of images without a header, each (channels, height, width), or \"-\" "
             "for the standard input; labels: a file with one integer per image; without it, all "
             "labels are 0. The images are read in order; after the last one, the first one "
             "follows again.\n"
             "top 0: (batch_size, channels, height, width), transformed by transform_param. top "
             "1: the labels, (batch_size). Without a source, you can plan a net with this layer, "
             "but not run it.",
     .param = "memory_data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 2, .max_out = 2}});

}  // namespace
}  // namespace trainer
