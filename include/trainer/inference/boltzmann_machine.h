#pragma once
// The restricted Boltzmann machines of a net: how likely their inputs are, and samples of them.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/layers/boltzmann.h"
#include "trainer/net/net.h"

namespace trainer {

// An RBM layer of a net. The weights are the net's, on its device.
struct BoltzmannMachine {
  int layer = 0;  // its number in the net
  std::string name;
  BoltzmannUnits units;
  BoltzmannWeights weights;
};

// The net's RBM layers with output HIDDEN, from the data up.
std::vector<BoltzmannMachine> FindMachines(const Net& net);

// The logarithm of Z, the sum of exp(-energy) over all states of a machine.
struct PartitionEstimate {
  double log_z = 0;
  double error = 0;          // standard error of log_z
  double low = 0, high = 0;  // log(Z - 3 errors of Z), log(Z + 3 errors of Z)
};

struct AnnealingOptions {
  int chains = 100;
  int steps = 14500;  // intermediate distributions
  uint64_t seed = 1;
  // Called after so many steps of all, for progress; may be empty.
  std::function<void(int done)> progress;
};

// Annealed importance sampling (Neal, Statistics and Computing 11, 2001, as Salakhutdinov and
// Murray, ICML 2008, use it): from a machine without weights, whose visible units have the means
// `base_means` (host, one per visible unit), to this one. Of the steps, 1 of 29 are at inverse
// temperatures up to 0.5, 8 up to 0.9 and 20 up to 1. Allocates memory for the chains.
PartitionEstimate AnnealPartition(const Device& device, const BoltzmannMachine& machine,
                                  std::span<const float> base_means,
                                  const AnnealingOptions& options);

// The same by summing over all states of the hidden or of the visible units, whichever are fewer.
// Throws kUsage for more than kMostSummed of them.
inline constexpr int kMostSummed = 22;
double SumPartition(const Device& device, const BoltzmannMachine& machine);

}  // namespace trainer
