#pragma once
// The gradient by which a restricted Boltzmann machine learns.

#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/layers/boltzmann.h"
#include "trainer/layers/chain_options.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Contrastive divergence: the gradient of mean free energy of the data less that of the ends of
// Markov chains, which are taken as constants. CD-k starts each chain at its record, PCD goes on
// from the last pass. Sources: Hinton, Neural Computation 14, 2002; Tieleman, ICML 2008; the
// sparsity target: Hinton, "A practical guide ...", section 11.
//
// With p the hidden units' means at the data v, q those at the chains' ends u, of N records and C
// chains:  dW = q^T u / C - p^T v / N,  dc = sum q / C - sum p / N,  db = sum u / C - sum v / N.
// With a sparsity target t, p is less by cost * (m - t), m the running mean of each unit.
class ContrastiveDivergence {
 public:
  // `records` of the batch. Adds what it needs to the layer's memory.
  ContrastiveDivergence(const ChainOptions& options, const BoltzmannUnits& units, int64_t records,
                        ScratchLayout& workspace, ScratchLayout& state);

  void Prepare(const Device& device);
  size_t ScratchBytes() const;

  // (records, visible): where forward puts the batch.
  float* Visible(const RunContext& run) const { return visible_.At(run.Workspace()); }
  // (records, visible): where forward may put the means that the units drawn first give; null
  // where chains do not start there.
  float* FirstMeans(const RunContext& run) const;

  // Adds the gradient times *scale, from `means` (records, hidden) at the data.
  void AddGradient(const RunContext& run, const BoltzmannWeights& weights, const float* means,
                   const float* scale, std::span<std::byte> scratch) const;

 private:
  float* ChainVisible(const RunContext& run) const;
  float* ChainHidden(const RunContext& run) const;
  void RunChains(const RunContext& run, const BoltzmannWeights& weights,
                 std::span<std::byte> scratch) const;
  void MeasureMeans(const RunContext& run, const float* means) const;

  ChainOptions options_;
  BoltzmannUnits units_;
  int64_t records_, chains_;
  ScratchRegion<float> visible_, hidden_;         // of records, then of chains
  ScratchRegion<float> kept_chains_, kept_mean_;  // of the layer's state
  std::unique_ptr<BoltzmannProducts> products_;
  std::unique_ptr<GemmPrimitive> gradient_;
};

}  // namespace trainer
