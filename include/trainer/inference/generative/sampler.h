#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// How many samples to draw, and how far the chains run.
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
  // Moves all samples of the batch on by one step of their chains.
  virtual void Step() = 0;
  // Returns the current samples, row-major, with the shape dims().
  virtual std::vector<float> Values() = 0;
  // Returns the shape of a batch of samples; the first axis counts them.
  virtual std::vector<int64_t> dims() const = 0;
};

// Returns a FeedbackSampler for the blob `options.blob` if it is named, else a sampler that makes
// Gibbs steps in the last RBM. The net must have been built with BufferReuse::kSeparate. Throws
// kUsage if the net has neither, and as FeedbackSampler.
std::unique_ptr<Sampler> MakeSampler(Net& net, const SamplingOptions& options);

// Samples in host memory, row-major.
struct SampleSet {
  std::vector<int64_t> dims;  // dims[0] samples
  std::vector<float> values;
};

// Takes `options.steps` steps, and then collects batches of samples, `options.every` steps apart,
// until there are `options.count`.
SampleSet DrawSamples(Sampler& sampler, const SamplingOptions& options);

}  // namespace trainer
