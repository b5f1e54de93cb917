#include "trainer/base/text.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

constexpr char kParam[] = "memory_data_param";

class MemoryData final : public Layer {
 public:
  explicit MemoryData(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    const caffe::MemoryDataParameter& param = spec_.proto().memory_data_param();
    const Shape shape{Size("batch_size", param.batch_size()), Size("channels", param.channels()),
                      Size("height", param.height()), Size("width", param.width())};
    plan.Out(0, shape);
    plan.Out(1, {shape[0]});
    plan.OutStaysF32(1);
  }

  void Forward(const RunContext&) override {
    spec_.Fail(
        "only a program that calls Caffe as a library can fill MemoryData, so this net can be "
        "planned but not run; use Data or ImageData to read images from the disk, or Input for a "
        "net without data");
  }

 private:
  int64_t Size(const char* field, uint32_t value) const {
    constexpr uint32_t kMost = 1u << 24;
    if (value < 1 || value > kMost) {
      spec_.FailIn(kParam, field, Join(field, " is ", value, "; it must be 1 to ", kMost));
    }
    return value;
  }

  LayerSpec spec_;
};

const RegisterLayer<MemoryData> kMemoryData(
    "MemoryData", {.text = "Stands for data that a program hands over; for planning only.\n"
                           "top 0: (batch_size, channels, height, width). top 1: (batch_size). A "
                           "net with this layer has shapes and can be planned; running it is "
                           "refused, as nothing here can fill it.",
                   .param = kParam,
                   .arity = {.min_in = 0, .max_in = 0, .min_out = 2, .max_out = 2}});

}  // namespace
}  // namespace trainer
