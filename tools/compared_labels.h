#pragma once
// Which scores and labels of a net `trainer test` compares.

#include <optional>
#include <string>

#include "trainer/cli/flag_set.h"
#include "trainer/inference/evaluate/label_consumers.h"
#include "trainer/inference/evaluate/predictions.h"
#include "trainer/net/net.h"

namespace trainer {

class ComparedLabels {
 public:
  // Those of --scores and --label, else of the first Accuracy layer, else of the first
  // SoftmaxWithLoss. Throws kUsage for one flag without the other, as CheckBlobs does, and kConfig,
  // naming `file`, where the net has neither layer.
  ComparedLabels(const Flags& flags, const Net& net, const std::string& file);

  // As they are after a pass.
  ScoredBatch Batch() const;
  int64_t Classes() const;
  // The layer that compares them; null where flags name the blobs.
  const LabelConsumer* use() const { return use_ ? &*use_ : nullptr; }

 private:
  const Net& net_;
  std::optional<LabelConsumer> use_;
  std::string scores_, labels_;  // named by flags
};

}  // namespace trainer
