#pragma once
// Which outputs of a net are compared with which targets, and how.

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/metrics/predictions.h"
#include "trainer/net/graph.h"

namespace trainer {

// What the targets of a record are.
enum class TargetKind : uint8_t {
  kClasses,  // one class, a whole number; the outputs are a score for each class
  kLabels,   // several labels, each 0 or 1; the outputs are a score for each label
  kNumbers,  // numbers that the outputs predict
};

// Two blobs of a net. The axis `axis` of the outputs has an element for each class, label or
// number; the targets have the same shape, or one element per row if they are classes.
struct Comparison {
  TargetKind kind = TargetKind::kClasses;
  int layer = -1;                // whose first two bottoms are compared; -1: two named blobs
  std::string outputs, targets;  // blobs
  int axis = 1;
  int64_t columns = 1;  // classes, labels or numbers
  int64_t inner = 1;    // rows per record: 1, or e.g. the pixels of an image
  bool has_ignore = false;
  float ignore = 0;                // a target that does not count, if has_ignore
  bool are_probabilities = false;  // of kLabels: outputs from 0 to 1, instead of logits
  // Of kClasses. If a loss of the net takes the softmax of the outputs, they are logits.
  ScoreKind scores = ScoreKind::kByValues;
};

// Returns the comparison that a layer of the net makes: the layer `name`, or without a name the
// first Accuracy layer, else the first SoftmaxWithLoss, else another loss of class labels, else
// SigmoidCrossEntropyLoss, else EuclideanLoss or SmoothL1Loss. No value if the net has no such
// layer. A layer whose targets are distributions over the classes does not count.
std::optional<Comparison> FindComparison(const Graph& graph, const std::string& name = "");

// Returns the comparison of two blobs that the user named. Equal shapes are numbers if
// `wants_numbers`, else labels; targets with one element per row are classes. Throws kConfig if the
// shapes fit neither.
Comparison CompareBlobs(const Graph& graph, const std::string& outputs, const std::string& targets,
                        bool wants_numbers);

// Returns "layer 'loss' (SoftmaxWithLoss)", or "'prob' and 'label'", for messages.
std::string Describe(const Comparison& comparison, const Graph& graph);

}  // namespace trainer
