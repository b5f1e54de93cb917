#include "trainer/inference/generative/rbm_likelihood.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "generative/exact_partition.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/generative/rbm.h"

namespace trainer {
namespace {

// Returns the number with two decimals, which are within the accuracy of the estimates.
std::string Nats(double value) { return Fixed(value, 2); }

// Computes log Z exactly, without an error, or estimates it by AIS with progress. The base
// distribution has the means of the records.
PartitionEstimate EstimatePartition(const Device& device, const RbmModel& rbm,
                                    const FreeEnergy& data, const RbmLikelihoodOptions& options) {
  PartitionEstimate estimate;
  if (options.exact) {
    estimate.log_z = estimate.low = estimate.high = ExactPartition(device, rbm);
    return estimate;
  }
  AisOptions ais;
  ais.chains = options.chains;
  ais.steps = options.steps;
  ais.seed = options.seed;
  const int tenth = std::max(1, ais.steps / 10);
  LOG(INFO) << "Estimating log Z with " << ais.chains << " chains over " << ais.steps
            << " distributions (--chains, --steps); --iterations=" << options.iterations
            << " sets only the number of test batches";
  Progress progress("Annealing", "distributions", ais.steps, Progress::InLog::kNothing);
  int reported = 0;
  ais.progress = [&](int done) {
    progress.Add(done - std::exchange(reported, done));
    if (done % tenth == 0) LOG(INFO) << done << " of " << ais.steps << " distributions";
  };
  return EstimatePartitionAis(device, rbm, data.means, ais);
}

}  // namespace

RbmLikelihood MeasureRbmLikelihood(Net& net, const RbmLikelihoodOptions& options) {
  const std::vector<RbmModel> rbms = FindRbms(net);
  const RbmModel& rbm = SelectRbm(rbms, options.layer);
  RbmLikelihood likelihood{options, rbm.name, rbm.units, {}, {}};
  likelihood.data = MeasureFreeEnergy(net, rbm, options.iterations);
  likelihood.partition = EstimatePartition(net.device(), rbm, likelihood.data, options);
  return likelihood;
}

std::string ToText(const RbmLikelihood& likelihood) {
  const RbmLikelihoodOptions& options = likelihood.options;
  const PartitionEstimate& z = likelihood.partition;
  const std::string accuracy =
      options.exact
          ? ", the sum over all states"
          : Join(", standard error ", Nats(z.error), "; ", Nats(z.low), " to ", Nats(z.high),
                 " within three (", options.chains, " chains, ", options.steps, " distributions)");
  const std::string bounds =
      options.exact ? "" : Join("; ", Nats(likelihood.low()), " to ", Nats(likelihood.high()));
  return Join(EscapeControl(likelihood.layer), ": ", likelihood.units.visible, " visible and ",
              likelihood.units.hidden, " hidden units\n", "free energy    ",
              Nats(likelihood.data.free_energy), ", the mean of ", likelihood.data.records,
              " records in ", options.iterations, " batches\n", "log Z          ", Nats(z.log_z),
              accuracy, "\nlog-likelihood ", Nats(likelihood.log_likelihood()), " nats per record",
              bounds, "\n");
}

Json ToJson(const RbmLikelihood& likelihood) {
  return Json::Object()
      .Set("layer", likelihood.layer)
      .Set("visible", likelihood.units.visible)
      .Set("hidden", likelihood.units.hidden)
      .Set("records", likelihood.data.records)
      .Set("free_energy", likelihood.data.free_energy)
      .Set("log_z", likelihood.partition.log_z)
      .Set("log_z_error", likelihood.partition.error)
      .Set("log_likelihood", likelihood.log_likelihood())
      .Set("low", likelihood.low())
      .Set("high", likelihood.high());
}

}  // namespace trainer
