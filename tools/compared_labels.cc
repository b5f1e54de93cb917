#include "compared_labels.h"

#include "shared_flags.h"
#include "trainer/base/error/error.h"

namespace trainer {

ComparedLabels::ComparedLabels(const Flags& flags, const Net& net, const std::string& file)
    : net_(net) {
  if (flags.Has("scores") != flags.Has("label")) {
    throw Error(ErrorCode::kUsage, "--scores and --label need each other; give both blobs");
  }
  if (flags.Has("scores")) {
    for (const char* flag : {"scores", "label"}) CheckBlobs(net_, flag, {flags.Text(flag)});
    scores_ = flags.Text("scores");
    labels_ = flags.Text("label");
    return;
  }
  const std::vector<LabelConsumer> uses = FindLabelConsumers(net);
  for (const char* type : {"Accuracy", "SoftmaxWithLoss"}) {
    for (const LabelConsumer& use : uses) {
      if (!use_ && net.LayerAt(use.layer).type() == type) use_ = use;
    }
  }
  if (use_) return;
  throw Error(ErrorCode::kConfig, {file},
              "the net has no Accuracy and no SoftmaxWithLoss layer, so it is unknown which scores "
              "to compare with which labels; name the two blobs with --scores and --label");
}

ScoredBatch ComparedLabels::Batch() const {
  if (!use_) return {net_.Value(scores_), net_.Value(labels_), 1, false, 0, labels_};
  return {net_.Input(use_->layer, 0),
          net_.Input(use_->layer, 1),
          use_->axis,
          use_->has_ignore,
          use_->ignore,
          use_->labels};
}

int64_t ComparedLabels::Classes() const {
  const ScoredBatch batch = Batch();
  return batch.axis < batch.scores.shape.Rank() ? batch.scores.shape[batch.axis] : 1;
}

}  // namespace trainer
