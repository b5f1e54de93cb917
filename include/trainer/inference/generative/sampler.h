#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

struct SamplingOptions {
  int count = 100;               // samples
  int steps = 1000;              // before the first batch of samples
  int every = 1;                 // steps between batches of samples
  std::string start = "random";  // or "zeros", "data"
  uint64_t seed = 0;
  // For a net without RBM layers: the blob with the samples, and FeedbackEdges "OUT:IN".
  std::string blob;
  std::vector<std::string> feed;
};

// Generates samples, a batch at a time. Not thread-safe.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual void Step() = 0;
  // Returns the current samples, row-major, with the shape dims().
  virtual std::vector<float> Values() = 0;
  virtual std::vector<int64_t> dims() const = 0;
};

// SampleSet the blob `options.blob` by FeedbackSampler if it is named, else the last RBM by Gibbs
// steps. The net must have been built with BufferReuse::kSeparate. Throws kUsage if the net has
// neither, and as FeedbackSampler.
std::unique_ptr<Sampler> MakeSampler(Net& net, const SamplingOptions& options);

struct SampleSet {
  std::vector<int64_t> dims;  // dims[0] samples
  std::vector<float> values;
};

// Takes `options.steps` steps, and then collects batches of samples until there are
// `options.count`.
SampleSet DrawSamples(Sampler& sampler, const SamplingOptions& options);

}  // namespace trainer
