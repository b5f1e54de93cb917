#pragma once
// Warnings about settings that a run accepts although they spoil its result. `trainer check` lists
// them, and `trainer train` logs them before it starts.

#include <vector>

#include "preflight/class_balance.h"
#include "trainer/config/solver_spec.h"
#include "trainer/datasets/audit.h"
#include "trainer/metrics/label_consumers.h"
#include "trainer/net/net.h"
#include "trainer/run/preflight/diagnostics.h"

namespace trainer {

// Warns about a solver: an unfreeze_at without effect, lr_policy "plateau" with the losses of
// single batches, transforms that differ between TRAIN and TEST. Lints each net as well.
void LintSolver(const SolverSpec& spec, Diagnostics* diagnostics);

// Warns about a net: messages that their layer does not read, a softmax before a loss that computes
// one itself, a DiceLoss of scores, and losses whose bottoms are swapped.
void LintNet(const NetUse& use, Diagnostics* diagnostics);

// The learning rates of the first and the last iteration, and the highest one. lr_policy "plateau"
// is taken as for a loss that never falls.
struct RateRange {
  float first = 0, last = 0, most = 0;
};
// Returns the learning rates of a run. Warns if they would end or waste the run. If one is not
// finite, adds an error and returns zeros.
RateRange LintRates(const SolverSpec& spec, Diagnostics* diagnostics);

// Warns about layers of the training net that no loss trains, and about a Softmax of single scores.
void LintTrainingNet(const Net& net, Diagnostics* diagnostics);

// A layer that takes labels of a data layer as classes.
struct LabelReader {
  std::string data_layer;
  std::string name;  // "layer 'loss' (SoftmaxWithLoss)"
  LabelConsumer use;
  BalanceFields balance;
  int64_t labels_per_record = 1;  // more in sequences and segmentation
};
std::vector<LabelReader> LabelReadersOf(const Graph& graph);

// Warns about the labels of a training set: classes without a record, records sorted by label,
// classes that are much larger than others. Skips sets with several labels per record.
void LintLabels(const DataAudit& data, const LabelReader& reader, Diagnostics* diagnostics);

// Logs all of these warnings for a training run. Skips the labels of data sets that take more than
// a second to read.
void WarnBeforeTraining(const SolverSpec& spec, const Net& net);

}  // namespace trainer
