#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/inference/generative/sampler.h"

namespace trainer {

// Copies the blob `from` to the input `to` after each pass.
struct FeedbackEdge {
  std::string from, to;
};

// Parses items of the form "OUT:IN". Throws kUsage for any other form.
std::vector<FeedbackEdge> ParseFeedbackEdges(const std::vector<std::string>& items);

// Runs passes of a net whose outputs become its inputs, as in a generative stochastic network. The
// sample is the blob `options.blob`.
class FeedbackSampler final : public Sampler {
 public:
  // Throws kUsage if `options` names unknown blobs, if the two blobs of an edge differ in size, or
  // if `start` is "data".
  FeedbackSampler(Net& net, const SamplingOptions& options);

  // Runs one pass, then copies the outputs to the inputs.
  void Step() override;
  // Returns the blob as the last pass left it.
  std::vector<float> Values() override;
  std::vector<int64_t> dims() const override;

 private:
  Net& net_;
  std::string blob_;
  std::vector<FeedbackEdge> edges_;
  std::vector<float> host_;
};

}  // namespace trainer
