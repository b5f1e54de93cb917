#include "test_metrics.h"

#include <algorithm>

#include "trainer/base/text/text.h"
#include "trainer/metrics/metric_names.h"

namespace trainer {
namespace {

Comparison RequireComparison(const SolverSpec& spec, const Graph& graph) {
  const std::string& layer = spec.proto.test_metric_layer();
  const std::optional<Comparison> comparison = FindComparison(graph, layer);
  if (comparison) return *comparison;
  if (!layer.empty()) {
    spec.Fail("test_metric_layer",
              Join("the first test net has no layer '", EscapeControl(layer),
                   "' that compares outputs with targets; name an Accuracy or a loss layer"));
  }
  spec.Fail("test_metric",
            "the first test net has no layer that compares outputs with targets, such as Accuracy, "
            "SoftmaxWithLoss, SigmoidCrossEntropyLoss or EuclideanLoss; add one, or remove the "
            "line",
            0);
}

void CheckMetrics(const SolverSpec& spec, const Net& net, const Comparison& comparison) {
  const auto& names = spec.proto.test_metric();
  for (int i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const std::string fault = MetricFault(name, comparison, Describe(comparison, net.graph()));
    if (!fault.empty()) spec.Fail("test_metric", fault, i);
    if (std::find(names.begin(), names.begin() + i, name) != names.begin() + i) {
      spec.Fail("test_metric", Join("test_metric '", name, "' is given twice; remove one"), i);
    }
    if (std::ranges::count(net.outputs(), name, &NetOutput::name) == 0) continue;
    spec.Fail("test_metric",
              Join("the first test net has an output '", name,
                   "', and a metric must have another name; give that top another name, or remove "
                   "the line"),
              i);
  }
}

}  // namespace

TestMetrics::TestMetrics(const SolverSpec& spec, Net& net, Net* rest)
    : names_(spec.proto.test_metric().begin(), spec.proto.test_metric().end()),
      comparison_(RequireComparison(spec, net.graph())) {
  CheckMetrics(spec, net, comparison_);
  reader_ = std::make_unique<RecordReader>(net, comparison_);
  if (rest != nullptr) rest_ = std::make_unique<RecordReader>(*rest, comparison_);
}

void TestMetrics::Begin() { metrics_.emplace(comparison_, MetricAccumulator::Options{names_}); }

void TestMetrics::BeginRound(int shared_batches) {
  round_.assign(reader_->NumbersPerPass() * static_cast<size_t>(shared_batches), -0.0f);
}

void TestMetrics::Keep(int batch) {
  const std::span<const float> rows = reader_->Rows();
  const size_t at = rows.size() * static_cast<size_t>(batch);
  if (round_.size() < at + rows.size()) round_.resize(at + rows.size(), -0.0f);
  std::ranges::copy(rows, round_.begin() + static_cast<std::ptrdiff_t>(at));
}

void TestMetrics::AddRound() { metrics_->Add(round_); }

void TestMetrics::AddRest() { metrics_->Add(rest_->Rows()); }

std::vector<ReportedValue> TestMetrics::Values() const {
  std::vector<ReportedValue> values;
  for (const MetricValue& metric : metrics_->Values()) {
    values.push_back({metric.name, static_cast<float>(metric.value), 0});
  }
  return values;
}

}  // namespace trainer
