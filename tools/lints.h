#pragma once
// Warnings of settings that a run accepts and that would spoil its result. `trainer check` lists
// them, and `trainer train` logs them before it starts.

#include <vector>

#include "trainer/config/solver_spec.h"
#include "trainer/dataset/audit.h"
#include "trainer/inference/evaluate/label_consumers.h"
#include "trainer/net/net.h"
#include "trainer/run/preflight/diagnostics.h"

namespace trainer {

// Of the solver and its nets as the files say it: the rates, a softmax in front of a loss that has
// one, transforms that differ between TRAIN and TEST.
void LintSolver(const SolverSpec& spec, Diagnostics* diagnostics);

// The rates of a run, by the solver's schedule; diagnostics where they would end or waste the run.
struct RateRange {
  float first = 0, last = 0, most = 0;
};
RateRange LintRates(const SolverSpec& spec, Diagnostics* diagnostics);

// Of the training net: layers that no loss trains.
void LintTrainingNet(const Net& net, Diagnostics* diagnostics);

// A layer that compares the labels which a data layer gives with classes.
struct LabelReader {
  std::string data_layer;
  std::string name;  // "layer 'loss' (SoftmaxWithLoss)"
  LabelConsumer use;
};
std::vector<LabelReader> LabelReadersOf(const Net& net);

// Of the labels that the audit of a training set found: classes without a record, records in the
// order of their labels.
void LintLabels(const DataAudit& data, const LabelReader& reader, Diagnostics* diagnostics);

// All of the above for a training run, in the log. The labels are those of data sets that are read
// in less than a second.
void WarnBeforeTraining(const SolverSpec& spec, const Net& net);

}  // namespace trainer
