#pragma once

#include <cstdint>
#include <string>

#include "trainer/base/text/json.h"
#include "trainer/inference/generative/ais_partition.h"
#include "trainer/inference/generative/free_energy.h"
#include "trainer/net/net.h"

namespace trainer {

// The RBM to measure, and how to find log Z; see AisOptions.
struct RbmLikelihoodOptions {
  std::string layer;    // see SelectRbm
  int iterations = 50;  // test batches
  bool exact = false;   // ExactPartition instead of EstimatePartitionAis
  int chains = 100;
  int steps = 14500;  // intermediate distributions
  uint64_t seed = 0;
};

// The mean log-likelihood of test records under an RBM: minus the free energy, minus log Z.
struct RbmLikelihood {
  RbmLikelihoodOptions options;
  std::string layer;
  BoltzmannUnits units;
  FreeEnergy data;
  PartitionEstimate partition;

  double log_likelihood() const { return -data.free_energy - partition.log_z; }
  // Returns the likelihood at three standard errors of Z above the estimate.
  double low() const { return -data.free_energy - partition.high; }
  // Returns the likelihood at three standard errors of Z below the estimate.
  double high() const { return -data.free_energy - partition.low; }
};

// Measures the free energy of `options.iterations` batches and computes or estimates log Z.
// Requires BufferReuse::kSeparate. Throws as SelectRbm, MeasureFreeEnergy and ExactPartition.
RbmLikelihood MeasureRbmLikelihood(Net& net, const RbmLikelihoodOptions& options);

// Returns the free energy, log Z and the log-likelihood, with their bounds if log Z is an estimate.
std::string ToText(const RbmLikelihood& likelihood);
Json ToJson(const RbmLikelihood& likelihood);

}  // namespace trainer
