#include "trainer/inference/generative/sampler.h"

#include <algorithm>

#include "generative/feedback_sampler.h"
#include "generative/gibbs_sampler.h"
#include "trainer/base/error/error.h"
#include "trainer/inference/generative/rbm.h"

namespace trainer {
namespace {

// Samples a stack of RBMs. The chains start at random units, at zeros, or at the first batch of
// data, whose size then is their number.
class RbmSampler final : public Sampler {
 public:
  RbmSampler(Net& net, std::vector<RbmModel> rbms, const SamplingOptions& options)
      : shape_(net.Value(rbms.front().input).shape),
        chains_(options.start == "data" ? static_cast<int>(shape_[0]) : options.count),
        gibbs_(net.device(), rbms, chains_, options.seed) {
    if (options.start == "random") return;
    std::vector<float> values(static_cast<size_t>(chains_ * rbms.front().units.visible));
    if (options.start == "data") {
      net.Forward();
      net.ReadNchw(net.Value(rbms.front().input), values);
    }
    gibbs_.StartAt(values);
  }

  void Step() override { gibbs_.Step(); }
  std::vector<float> Values() override { return gibbs_.Means(); }
  // Returns the shape of the first RBM's input, with the number of chains as its first axis.
  std::vector<int64_t> dims() const override {
    std::vector<int64_t> dims(shape_.dims().begin(), shape_.dims().end());
    dims[0] = chains_;
    return dims;
  }

 private:
  Shape shape_;
  int chains_;
  GibbsSampler gibbs_;
};

}  // namespace

std::unique_ptr<Sampler> MakeSampler(Net& net, const SamplingOptions& options) {
  if (!options.blob.empty()) return std::make_unique<FeedbackSampler>(net, options);
  std::vector<RbmModel> rbms = FindRbms(net);
  if (rbms.empty()) {
    throw Error(ErrorCode::kUsage,
                "the net has no RBM layer; name the blob with the samples: --blob=NAME");
  }
  return std::make_unique<RbmSampler>(net, std::move(rbms), options);
}

// Takes only the first samples of the last batch if the batches do not add up to the count.
SampleSet DrawSamples(Sampler& sampler, const SamplingOptions& options) {
  SampleSet samples;
  int64_t count = 0;
  for (int step = 0; step < options.steps; ++step) sampler.Step();
  for (;;) {
    samples.dims = sampler.dims();
    const std::vector<float> batch = sampler.Values();
    const auto each = batch.size() / static_cast<size_t>(samples.dims[0]);
    const int64_t taken = std::min(samples.dims[0], options.count - count);
    samples.values.insert(
        samples.values.end(), batch.begin(),
        batch.begin() + static_cast<std::ptrdiff_t>(each * static_cast<size_t>(taken)));
    count += taken;
    samples.dims[0] = count;
    if (count >= options.count) return samples;
    for (int step = 0; step < options.every; ++step) sampler.Step();
  }
}

}  // namespace trainer
