#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// The scores and the labels of one batch, as a pass left them on the device.
struct ScoredBatch {
  ConstTensor scores, labels;
  int axis = 1;  // axis of `scores` that counts the classes
  bool has_ignore = false;
  float ignore = 0;        // label value that is not counted, if has_ignore
  std::string label_name;  // for error messages
};

// The net's prediction for one label.
struct Prediction {
  int64_t index = 0;  // of the label in the batch
  int64_t label = 0, predicted = 0;
  double loss = 0;        // -log(probability of the label); infinite if a score is NaN
  double confidence = 0;  // probability of the predicted class
};

// What the scores of a row are.
enum class ScoreKind : uint8_t {
  kByValues,  // probabilities if they are not negative and sum to 1, else logits
  kLogits,
};

// Returns the prediction for `count` scores with stride `step` and a label in [0, count). The
// predicted class has the highest score. A tie with another class, or a NaN score, counts as a
// wrong prediction, as in an Accuracy layer. Logits are converted to probabilities by softmax.
Prediction Predict(const float* scores, int64_t count, int64_t step, int64_t label,
                   ScoreKind kind = ScoreKind::kByValues);

// Writes the probability of each class for one row of scores, converted as Predict does.
void ReadProbabilities(std::span<const float> scores, std::span<double> probabilities,
                       ScoreKind kind = ScoreKind::kByValues);

// Reads the predictions of one batch, without ignored labels. Throws kData if a label is not in
// [0, classes), and kConfig if the shapes of scores and labels do not match.
std::vector<Prediction> ReadPredictions(const Net& net, const ScoredBatch& batch, int64_t classes);

// Throws kData: `label` of the blob `blob` is not one of `classes` classes.
[[noreturn]] void ThrowNoClass(float label, const std::string& blob, int64_t classes);

}  // namespace trainer
