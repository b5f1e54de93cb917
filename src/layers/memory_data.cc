#include "common/prefetched.h"
#include "trainer/data/memory_records.h"

namespace trainer {
namespace {

class MemoryData final : public Prefetched {
 public:
  MemoryData(const LayerSpec& spec, const LayerEnv& env)
      : Prefetched(MakeMemoryPrefetcher(spec, env.reading)),
        spec_(spec),
        has_source_(HasMemoryRecords(spec)) {}

  void Describe(DescribeContext& plan) override {
    Prefetched::Describe(plan);
    plan.OutStaysF32(1);
  }

  void Forward(const RunContext& run) override {
    if (has_source_) return Prefetched::Forward(run);
    spec_.Fail(
        "only a program that calls Caffe as a library can fill MemoryData without a source, so "
        "this net can be planned but not run; give memory_data_param a source, use Data or "
        "ImageData to read images from the disk, or Input for a net without data");
  }

  const WaitCounters* Waits() const override { return has_source_ ? Prefetched::Waits() : nullptr; }

 private:
  LayerSpec spec_;
  bool has_source_;
};

const RegisterLayer<MemoryData> kMemoryData(
    "MemoryData",
    {.text = "Images of one file that is held in memory, or a place for data that a program hands "
             "over.\n"
             "source: bytes of images without a header, each (channels, height, width), or \"-\" "
             "for the standard input; labels: a file with a whole number for each image, all 0 "
             "where there is none. In their order, from the start again after the last.\n"
             "top 0: (batch_size, channels, height, width), as transform_param makes them. top 1: "
             "the labels, (batch_size). Without a source a net with this layer has shapes and can "
             "be planned; running it is refused, as nothing here can fill it.",
     .param = "memory_data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 2, .max_out = 2}});

}  // namespace
}  // namespace trainer
