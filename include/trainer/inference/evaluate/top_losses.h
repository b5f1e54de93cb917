#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/metrics/label_consumers.h"
#include "trainer/metrics/predictions.h"

namespace trainer {

// An image with a high loss.
struct TopLoss {
  int64_t record = 0;  // 0-based position in the test data
  Prediction prediction;
  Shape shape;                // (1, C, H, W)
  std::vector<float> values;  // the net's input, in the order of `shape`
};

// Keeps the `max` images with the highest loss over all batches.
class TopLosses {
 public:
  explicit TopLosses(size_t max) : max_(max) {}

  // Adds a batch of `images`, (N, C, H, W). `labels` is the number of labels of the batch;
  // `predictions` omits the ignored ones. Does nothing if N is not `labels`, e.g. if there is a
  // label for each pixel.
  void Add(const Net& net, const ConstTensor& images, int64_t labels,
           const std::vector<Prediction>& predictions);

  // The highest loss comes first.
  const std::vector<TopLoss>& images() const { return images_; }

 private:
  size_t max_;
  int64_t records_ = 0;
  std::vector<TopLoss> images_;
};

// Returns the first output of a data layer that has the shape of images. Tries the layer that
// produces the labels of `consumer` first; `consumer` may be null. Returns nullopt if there is
// none.
std::optional<Tensor> FindImages(const Net& net, const LabelConsumer* consumer);

}  // namespace trainer
