#include "generative/feedback_sampler.h"

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/blob_source.h"

namespace trainer {

std::vector<FeedbackEdge> ParseFeedbackEdges(const std::vector<std::string>& items) {
  std::vector<FeedbackEdge> edges;
  for (const std::string& item : items) {
    const size_t colon = item.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == item.size()) {
      throw Error(ErrorCode::kUsage,
                  Join("--feed: '", EscapeControl(item), "' is not of the form OUTPUT:INPUT"));
    }
    edges.push_back({item.substr(0, colon), item.substr(colon + 1)});
  }
  return edges;
}

FeedbackSampler::FeedbackSampler(Net& net, const SamplingOptions& options)
    : net_(net), blob_(options.blob) {
  RequireBlobs(net, "blob", {blob_});
  const std::vector<InputBlob> inputs = InputBlobs(net);
  for (const FeedbackEdge& edge : ParseFeedbackEdges(options.feed)) {
    RequireBlobs(net, "feed", {edge.from});
    const auto input = std::ranges::find(inputs, edge.to, &InputBlob::name);
    if (input == inputs.end()) {
      throw Error(ErrorCode::kUsage,
                  Join("--feed: '", EscapeControl(edge.to), "' is not a top of an Input layer"));
    }
    if (net.Value(edge.from).Count() != input->value.Count()) {
      throw Error(ErrorCode::kUsage, Join("--feed: '", EscapeControl(edge.from), "' has ",
                                          net.Value(edge.from).Count(), " numbers, but '",
                                          EscapeControl(edge.to), "' has ", input->value.Count()));
    }
    edges_.push_back(edge);
  }
  if (options.start == "data") {
    throw Error(ErrorCode::kUsage,
                "--start=data needs a net with RBM layers; for this net use --start=random or "
                "--start=zeros");
  }
  if (!inputs.empty() && options.start == "random") MakeRandomSource(options.seed, 1)->Fill(net);
}

void FeedbackSampler::Step() {
  net_.Forward();
  for (const FeedbackEdge& edge : edges_) {
    host_.resize(static_cast<size_t>(net_.Value(edge.from).Count()));
    net_.ReadNchw(net_.Value(edge.from), host_);
    net_.WriteNchw(host_, net_.Value(edge.to));
  }
}

std::vector<float> FeedbackSampler::Values() {
  std::vector<float> values(static_cast<size_t>(net_.Value(blob_).Count()));
  net_.ReadNchw(net_.Value(blob_), values);
  return values;
}

std::vector<int64_t> FeedbackSampler::dims() const {
  const Shape& shape = net_.Value(blob_).shape;
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  if (dims.empty()) dims = {1};
  return dims;
}

}  // namespace trainer
