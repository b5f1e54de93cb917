#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/config/solver_spec.h"
#include "trainer/inference/evaluate/confusion_matrix.h"
#include "trainer/inference/evaluate/output_means.h"
#include "trainer/inference/evaluate/top_losses.h"
#include "trainer/inference/inference_net.h"
#include "trainer/metrics/metric_accumulator.h"

namespace trainer {

// What to test, and which details to keep.
struct EvaluationOptions {
  std::vector<std::string> weights;  // files, loaded in order
  // Batches that the user asked for, or kExactPass. For the notes about the number of records.
  int iterations = kExactPass;
  int64_t solver_test_iter = 0;  // test_iter of the run's solver; 0: unknown
  bool confusion = false;        // requires BufferReuse::kSeparate
  // Do without the confusion matrix if the net has no Accuracy and no SoftmaxWithLoss layer.
  bool confusion_may_lack = false;
  // The compared blobs, both or none; see ScoreSelector. Metrics of named blobs also require
  // BufferReuse::kSeparate.
  std::string scores, label;
  std::string class_names;  // file with a name per line; "": classes are numbers
  size_t top_losses = 0;    // how many images with the highest loss to keep, if `confusion`
  std::string file;         // of the net or the solver, for messages
  // The metrics; an empty list for none, nullopt for DefaultMetrics where the net compares
  // something.
  std::optional<std::vector<std::string>> metrics;
  std::string predictions;  // file with the predictions of each record; "": none
  bool curves = false;      // make the curves of EvaluatedMetrics
};

// The metrics of a test.
struct EvaluatedMetrics {
  TargetKind kind = TargetKind::kClasses;
  size_t columns = 1;  // classes, labels or numbers
  std::vector<MetricValue> values;
  MetricCurves curves;
};

// The results of a test: means of the outputs and, if asked for, what was predicted for each label.
struct Evaluation {
  std::string net;
  int batches = 0;
  int64_t records = 0;  // 0: unknown
  double loss = 0;
  std::vector<OutputMean> outputs;
  std::optional<ConfusionMatrix> confusion;
  std::vector<std::string> class_names;
  std::vector<TopLoss> top_losses;
  std::optional<EvaluatedMetrics> metrics;
};

// Returns the number of batches of a test: `iterations`, or kExactPass if a layer of the net reads
// a finite set of records, or else 50, as Caffe's program.
int ChooseTestBatches(const NetSpec& spec, const caffe::NetState& state, int iterations);

// Loads the weights and runs the test that `net` was built for with InferenceOptions::test_batches.
// Logs the outputs of each batch and their means. Throws as ScoreSelector, ReadClassNames,
// InferenceNet::LoadWeights, Net::Forward and ReadPredictions; kUsage for a metric that the net
// does not have, and kConfig if the net compares nothing and the options ask for it.
Evaluation Evaluate(InferenceNet& net, const EvaluationOptions& options);

// Returns the confusion matrix if there is one, else a line per output; then the metrics.
std::string ToText(const Evaluation& evaluation);
// Returns the means of the outputs, the metrics and, if there is one, the confusion matrix.
Json ToJson(const Evaluation& evaluation);

// Writes to the folder of a run: confusion.json; worst.json, which has the images as PNG in base
// 64; and curves.json, if there are metrics. Throws as WriteWhole.
void WriteEvaluation(const std::string& folder, const Evaluation& evaluation);

}  // namespace trainer
