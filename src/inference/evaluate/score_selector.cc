#include "evaluate/score_selector.h"

#include "trainer/base/error/error.h"
#include "trainer/inference/inference_net.h"

namespace trainer {

ScoreSelector::ScoreSelector(const Net& net, const std::string& scores, const std::string& labels,
                             const std::string& file)
    : net_(net), scores_(scores), labels_(labels) {
  if (scores.empty() != labels.empty()) {
    throw Error(ErrorCode::kUsage, "--scores and --label need each other; give both blobs");
  }
  if (!scores.empty()) {
    RequireBlobs(net_, "scores", {scores});
    RequireBlobs(net_, "label", {labels});
    return;
  }
  const std::vector<LabelConsumer> consumers = FindLabelConsumers(net.graph());
  for (const char* type : {"Accuracy", "SoftmaxWithLoss"}) {
    for (const LabelConsumer& consumer : consumers) {
      const LayerSpec& layer = net.graph().nodes[NodeId(consumer.layer)].spec;
      if (!consumer_ && layer.type() == type) consumer_ = consumer;
    }
  }
  if (consumer_) return;
  throw Error(ErrorCode::kConfig, {file},
              "the net has no Accuracy and no SoftmaxWithLoss layer, so it is unknown which scores "
              "to compare with which labels; name the two blobs with --scores and --label");
}

// Reads the inputs of the layer itself, because the name of a blob means its latest value, which a
// later layer that works in place has changed.
ScoredBatch ScoreSelector::Batch() const {
  if (!consumer_) return {net_.Value(scores_), net_.Value(labels_), 1, false, 0, labels_};
  const Node& layer = net_.graph().nodes[NodeId(consumer_->layer)];
  return {net_.Value(layer.in[0]), net_.Value(layer.in[1]), consumer_->axis,
          consumer_->has_ignore,   consumer_->ignore,       consumer_->labels};
}

int64_t ScoreSelector::NumClasses() const {
  const ScoredBatch batch = Batch();
  return batch.axis < batch.scores.shape.Rank() ? batch.scores.shape[batch.axis] : 1;
}

}  // namespace trainer
