#pragma once
// The metrics of a test (test_metric), which are computed over all its records together.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"
#include "trainer/metrics/metric_accumulator.h"
#include "trainer/metrics/record_reader.h"
#include "trainer/monitor/observer.h"
#include "trainer/net/net.h"

namespace trainer {

// Collects the records of the first test net, in the order in which a single rank reads them. With
// several ranks, each rank gives the records of its batches, and the sum over the ranks of round()
// has all of them: the elements of other ranks are -0, because x + -0 is x.
class TestMetrics {
 public:
  // Finds what the net compares. `net` and `rest`, the net of a smaller last batch or null, must
  // outlive the object. Throws kConfig at the line of test_metric if the net compares nothing, or a
  // metric is unknown, given twice, of other targets or the name of an output; at that of
  // test_metric_layer if no such layer compares anything.
  TestMetrics(const SolverSpec& spec, Net& net, Net* rest);

  // Forgets all records: a test begins.
  void Begin();
  // Begins a round. `shared_batches`: the number of batches that the ranks share, which have the
  // same size; 0 if this rank computes all.
  void BeginRound(int shared_batches);
  // Copies the records of the net's last forward pass into the round. `batch` is the index of the
  // batch in the round, counted over all ranks.
  void Keep(int batch);
  std::span<float> round() { return round_; }
  // Adds the records of the round.
  void AddRound();
  // Adds the records of the last pass of the net of the smaller last batch.
  void AddRest();

  const std::vector<std::string>& names() const { return names_; }
  std::vector<ReportedValue> Values() const;

 private:
  const std::vector<std::string> names_;
  Comparison comparison_;
  std::unique_ptr<RecordReader> reader_, rest_;
  std::optional<MetricAccumulator> metrics_;
  std::vector<float> round_;
};

}  // namespace trainer
