#include "trainer/inference/predict/blob_source.h"

namespace trainer {
namespace {

// See MakeRandomSource.
class RandomSource final : public BlobSource {
 public:
  RandomSource(uint64_t seed, int passes) : seed_(seed), passes_(passes) {}

  // Fills whole batches. A net without inputs still makes one pass per call.
  int64_t Fill(const Net& net) override {
    if (pass_ == passes_) return 0;
    const std::vector<InputBlob> inputs = InputBlobs(net);
    for (const InputBlob& input : inputs) {
      const PhiloxKey key{seed_, RngStreamOf(input.name, caffe::TEST)};
      host_.resize(static_cast<size_t>(input.value.Count()));
      for (size_t i = 0; i < host_.size(); ++i) {
        host_[i] = UniformFloat(PhiloxWord(key, static_cast<uint32_t>(pass_), i));
      }
      net.WriteNchw(host_, input.value);
    }
    ++pass_;
    return inputs.empty() ? 1 : inputs[0].value.shape[0];
  }

 private:
  uint64_t seed_;
  int passes_, pass_ = 0;
  std::vector<float> host_;
};

}  // namespace

std::unique_ptr<BlobSource> MakeRandomSource(uint64_t seed, int passes) {
  return std::make_unique<RandomSource>(seed, passes);
}

}  // namespace trainer
