#include "evaluate/record_comparison.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/metrics/metric_names.h"

namespace trainer {
namespace {

// Curves need the scores of all records, so they are drawn for nets with few columns, or if a
// metric needs the scores anyway.
constexpr int64_t kMostCurveColumns = 32;
constexpr size_t kMostCurves = 8;

bool AsksForMetrics(const EvaluationOptions& options) {
  return options.metrics && !options.metrics->empty();
}

// Returns what the net of the test compares; no value if that is nothing.
std::optional<Comparison> FindIn(const Net& net, const EvaluationOptions& options) {
  if (options.scores.empty() && options.label.empty()) return FindComparison(net.graph());
  if (options.scores.empty() || options.label.empty()) {
    throw Error(ErrorCode::kUsage, "--scores and --label need each other; give both blobs");
  }
  RequireBlobs(net, "scores", {options.scores});
  RequireBlobs(net, "label", {options.label});
  const bool wants_numbers =
      AsksForMetrics(options) && std::ranges::any_of(*options.metrics, IsNumberMetric);
  return CompareBlobs(net.graph(), options.scores, options.label, wants_numbers);
}

bool KeepsScores(const Comparison& comparison, const EvaluationOptions& options) {
  return options.curves && comparison.kind != TargetKind::kNumbers && comparison.inner == 1 &&
         comparison.columns <= kMostCurveColumns;
}

}  // namespace

std::unique_ptr<RecordComparison> RecordComparison::Make(TestNets& nets,
                                                         const EvaluationOptions& options) {
  const bool required = AsksForMetrics(options) || !options.predictions.empty();
  if (options.metrics && !required) return nullptr;
  if (!options.predictions.empty()) RequireRecordFormat(options.predictions);
  std::optional<Comparison> comparison;
  try {
    comparison = FindIn(nets.net(), options);
  } catch (const Error& error) {
    if (required || error.code() != ErrorCode::kConfig) throw;
    return nullptr;
  }
  if (!comparison && required) {
    throw Error(ErrorCode::kConfig, {options.file},
                "the net has no layer that compares outputs with targets (Accuracy, "
                "SoftmaxWithLoss, SigmoidCrossEntropyLoss, EuclideanLoss and others); name the two "
                "blobs with --scores and --label");
  }
  if (!comparison) return nullptr;
  return std::unique_ptr<RecordComparison>(
      new RecordComparison(nets, *comparison, options, required));
}

RecordComparison::RecordComparison(TestNets& nets, const Comparison& comparison,
                                   const EvaluationOptions& options, bool required)
    : comparison_(comparison), required_(required), has_curves_(KeepsScores(comparison, options)) {
  const Graph& graph = nets.net().graph();
  const std::vector<std::string> names =
      options.metrics ? *options.metrics : DefaultMetrics(comparison);
  for (const std::string& name : names) {
    const std::string fault = MetricFault(name, comparison, Describe(comparison, graph));
    if (!fault.empty()) throw Error(ErrorCode::kUsage, "--metrics: " + fault);
  }
  if (!options.predictions.empty()) {
    if (comparison.inner > 1) {
      throw Error(
          ErrorCode::kUsage,
          Join("--predictions: ", Describe(comparison, graph), " compares ", comparison.inner,
               " places of each record, and the file has a row per record; leave the flag "
               "out, or write the blobs with 'trainer features'"));
    }
    file_ = OpenRecordFile(options.predictions, comparison);
  }
  for (Net* net : {&nets.net(), nets.rest()}) {
    if (net == nullptr) continue;
    readers_.push_back(std::make_unique<RecordReader>(*net, comparison));
  }
  if (!options.class_names.empty() && !options.confusion) {
    class_names_ = ReadClassNames(options.class_names, comparison.columns);
  }
  if (!names.empty()) {
    metrics_.emplace(comparison, MetricAccumulator::Options{names, true, has_curves_});
  }
}

void RecordComparison::AddBatch(bool is_rest) {
  if (failed_) return;
  try {
    const std::span<const float> rows = readers_[is_rest ? 1 : 0]->Rows();
    if (metrics_) metrics_->Add(rows);
    if (file_ == nullptr) return;
    const auto width = static_cast<size_t>(RowWidth(comparison_));
    const auto columns = static_cast<size_t>(comparison_.columns);
    for (size_t at = 0; at < rows.size(); at += width) {
      file_->Add(rows.subspan(at, width - columns), rows.subspan(at + width - columns, columns));
    }
  } catch (const Error& error) {
    if (required_ || error.code() != ErrorCode::kData) throw;
    LOG(INFO) << "No metrics: " << error.what();
    failed_ = true;
  }
}

void RecordComparison::MoveTo(Evaluation* evaluation) {
  if (failed_) return;
  if (file_ != nullptr) file_->Finish();
  if (evaluation->class_names.empty()) evaluation->class_names = std::move(class_names_);
  if (!metrics_) return;
  EvaluatedMetrics& result = evaluation->metrics.emplace();
  result.kind = comparison_.kind;
  result.columns = static_cast<size_t>(comparison_.columns);
  result.values = metrics_->Values();
  if (has_curves_) result.curves = metrics_->MakeCurves(kMostCurves);
}

}  // namespace trainer
