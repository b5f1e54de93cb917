#pragma once
// The gradient by which a restricted Boltzmann machine learns.

#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/layers/boltzmann.h"
#include "trainer/layers/chain_options.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Contrastive divergence: the gradient of the mean free energy of the data minus the mean free
// energy of the ends of Markov chains, which are taken as constants. CD-k starts each chain at its
// record; PCD continues from the last pass. Sources: Hinton, Neural Computation 14, 2002; Tieleman,
// ICML 2008; the sparsity target: Hinton, "A practical guide ...", section 11.
//
// Let p be the hidden units' means at the data v, q the means at the chains' ends u, for N records
// and C chains. Then  dW = q^T u / C - p^T v / N,  dc = sum q / C - sum p / N,  db = sum u / C -
// sum v / N. With a sparsity target t, p is reduced by cost * (m - t), where m is the running mean
// of each unit.
class ContrastiveDivergence {
 public:
  // `records` is the size of the batch. Adds the memory that it needs to the layer's workspace and
  // state.
  ContrastiveDivergence(const ChainOptions& options, const BoltzmannUnits& units, int64_t records,
                        ScratchLayout& workspace, ScratchLayout& state);

  // Makes the matrix products. Called in the layer's Prepare; ScratchBytes is valid afterwards.
  void Prepare(const Device& device);
  // Returns the scratch memory that AddGradient needs.
  size_t ScratchBytes() const;

  // Appends the kernels that declined the products of the chains: see Layer::skipped_kernels.
  void AppendSkipped(std::vector<std::string>* lines) const;

  // Returns the array (records, visible) into which Forward copies the batch.
  float* Visible(const RunContext& run) const { return visible_.At(run.Workspace()); }
  // Returns the array (records, visible) for the visible means that Forward computes from the first
  // drawn hidden units; null if chains do not start there.
  float* FirstMeans(const RunContext& run) const;

  // Runs the chains and adds the gradient, multiplied by *scale, to the gradients of the parameters
  // W, c and b. `means` (records, hidden) are the hidden means p at the data. Overwrites the batch
  // in Visible.
  void AddGradient(const RunContext& run, const BoltzmannWeights& weights, const float* means,
                   const float* scale, std::span<std::byte> scratch) const;

 private:
  // Returns the visible units of the chains, (chains, visible).
  float* ChainVisible(const RunContext& run) const;
  // Returns the hidden units of the chains, (chains, hidden).
  float* ChainHidden(const RunContext& run) const;
  void RunChains(const RunContext& run, const BoltzmannWeights& weights,
                 std::span<std::byte> scratch) const;
  // Updates the running means m of the hidden units, for the sparsity target.
  void MeasureMeans(const RunContext& run, const float* means) const;

  ChainOptions options_;
  BoltzmannUnits units_;
  int64_t records_, chains_;
  ScratchRegion<float> visible_, hidden_;         // first of the records, then of the chains
  ScratchRegion<float> kept_chains_, kept_mean_;  // in the layer's state
  std::unique_ptr<BoltzmannProducts> products_;
  std::unique_ptr<GemmPrimitive> gradient_;
};

}  // namespace trainer
