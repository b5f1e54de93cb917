#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/record_file.h"
#include "trainer/inference/evaluate/evaluation.h"
#include "trainer/metrics/metric_accumulator.h"
#include "trainer/metrics/record_reader.h"
#include "trainer/net/test_nets.h"

namespace trainer {

// Computes the metrics of a test and writes its predictions.
class RecordComparison {
 public:
  // Finds what the nets compare. Null if there is nothing to compute: the user asked for no
  // metrics, or for nothing and the nets compare nothing. Throws kUsage for a metric that cannot be
  // computed, a bad file name, and predictions of nets with several labels per record; kConfig if
  // the user asked for something and the nets compare nothing; as RequireBlobs,
  // ReadClassNames and OpenRecordFile.
  static std::unique_ptr<RecordComparison> Make(TestNets& nets, const EvaluationOptions& options);

  // Adds the batch that was computed last, by the net of the smaller last batch if `is_rest`.
  void AddBatch(bool is_rest);
  // Computes the metrics and finishes the file. The object is not usable after that.
  void MoveTo(Evaluation* evaluation);

 private:
  RecordComparison(TestNets& nets, const Comparison& comparison, const EvaluationOptions& options,
                   bool required);

  const Comparison comparison_;
  const bool required_;  // the user asked for it, so errors are thrown
  bool failed_ = false;
  std::vector<std::unique_ptr<RecordReader>> readers_;  // of whole batches, of a smaller last one
  std::optional<MetricAccumulator> metrics_;            // none without metrics
  std::unique_ptr<RecordFile> file_;                    // null without one
  bool has_curves_ = false;
  std::vector<std::string> class_names_;  // read here unless the confusion matrix has them
};

}  // namespace trainer
