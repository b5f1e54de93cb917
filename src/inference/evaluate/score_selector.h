#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/metrics/label_consumers.h"
#include "trainer/metrics/predictions.h"
#include "trainer/net/net.h"

namespace trainer {

// Selects which scores of a net are compared with which labels.
class ScoreSelector {
 public:
  // Selects the blobs `scores` and `labels` if they are named, else the inputs of the first
  // Accuracy layer, else of the first SoftmaxWithLoss layer. `file` is the net's, for messages.
  // Throws kUsage if only one of the blobs is named, as RequireBlobs, and kConfig if the net has
  // neither layer.
  ScoreSelector(const Net& net, const std::string& scores, const std::string& labels,
                const std::string& file);

  // Returns the tensors that the last pass filled.
  ScoredBatch Batch() const;
  // Returns the length of the scores' axis of classes; 1 if the scores do not have that axis.
  int64_t NumClasses() const;
  // Returns the layer that compares the blobs; null if they were named.
  const LabelConsumer* consumer() const { return consumer_ ? &*consumer_ : nullptr; }

 private:
  const Net& net_;
  std::optional<LabelConsumer> consumer_;
  std::string scores_, labels_;
};

}  // namespace trainer
