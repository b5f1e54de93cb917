#include "rbm/contrastive_divergence.h"

#include <algorithm>

#include "shared/skipped_kernels.h"
#include "trainer/backend/loops/map_rows.h"

namespace trainer {
namespace {

// Updates the running mean of one hidden unit per row: decay * past + (1 - decay) * the batch's
// mean. A mean of exactly 0 was not measured yet, so the batch's replaces it.
struct MeasureRow {
  const float* means;
  float* kept;
  int64_t records, hidden;
  float decay;
  template <class Row>
  HD void operator()(const Row& row) const {
    const float sum = row.Sum([&](int64_t i) { return means[i * hidden + row.index]; });
    const float mean = sum / static_cast<float>(records);
    row.Once([&] {
      const float past = kept[row.index];
      kept[row.index] = past == 0 ? mean : decay * past + (1 - decay) * mean;
    });
  }
};

// Computes the factors of dW = hidden^T visible, in place: rows of the data get (cost * (m - t) -
// p) / N, rows of the chains q / C, all times *scale. `means` holds p; `hidden` holds q in the rows
// of the chains.
struct HiddenFactors {
  const float *means, *kept_mean, *scale;
  float* hidden;
  int64_t of_records, units;
  float per_record, per_chain, target, cost;
  HD void operator()(int64_t i) const {
    if (i >= of_records) {
      hidden[i] *= *scale * per_chain;
      return;
    }
    const float sparse = target > 0 ? cost * (kept_mean[i % units] - target) : 0.0f;
    hidden[i] = *scale * per_record * (sparse - means[i]);
  }
};

// Computes the terms of db, in place: -v / N in the rows of the data, u / C in the rows of the
// chains, all times *scale.
struct VisibleFactors {
  const float* scale;
  float* visible;
  int64_t of_records;
  float per_record, per_chain;
  HD void operator()(int64_t i) const {
    visible[i] *= *scale * (i < of_records ? -per_record : per_chain);
  }
};

// Adds the sum over the rows of `values`, of shape (rows, units), to `to` (units).
void AddRowSums(const Device& device, const float* values, const Shape& shape, float* to) {
  device.AddChannelSums(ChannelSumsDesc::Of(shape, 1), ConstTensor(values, shape), nullptr, to);
}

// Copies `count` floats on the device.
void CopyFloats(const Device& device, const float* from, float* to, int64_t count) {
  device.Copy(BlockCopy(sizeof(float), 1, count, 0, 0), from, to);
}

}  // namespace

ContrastiveDivergence::ContrastiveDivergence(const ChainOptions& options,
                                             const BoltzmannUnits& units, int64_t records,
                                             ScratchLayout& workspace, ScratchLayout& state)
    : options_(options), units_(units), records_(records) {
  chains_ = options.persistent && options.chains > 0 ? options.chains : records;
  visible_ = workspace.Add<float>((records_ + chains_) * units.visible);
  hidden_ = workspace.Add<float>((records_ + chains_) * units.hidden);
  if (options.persistent) kept_chains_ = state.Add<float>(chains_ * units.visible);
  if (options.sparsity_target > 0) kept_mean_ = state.Add<float>(units.hidden);
}

void ContrastiveDivergence::Prepare(const Device& device) {
  products_ = std::make_unique<BoltzmannProducts>(device, units_, chains_);
  gradient_ = device.NewGemm({.m = units_.hidden,
                              .n = units_.visible,
                              .k = records_ + chains_,
                              .trans_a = true,
                              .accumulate = true});
}

size_t ContrastiveDivergence::ScratchBytes() const {
  return std::max(products_->ScratchBytes(), gradient_->ScratchBytes());
}

void ContrastiveDivergence::AppendSkipped(std::vector<std::string>* lines) const {
  AppendSkippedKernels("chains, hidden units", &products_->up(), lines);
  AppendSkippedKernels("chains, visible units", &products_->down(), lines);
  AppendSkippedKernels("weight gradient of the chains", gradient_.get(), lines);
}

float* ContrastiveDivergence::ChainVisible(const RunContext& run) const {
  return Visible(run) + records_ * units_.visible;
}

float* ContrastiveDivergence::ChainHidden(const RunContext& run) const {
  return hidden_.At(run.Workspace()) + records_ * units_.hidden;
}

float* ContrastiveDivergence::FirstMeans(const RunContext& run) const {
  return options_.persistent ? nullptr : ChainVisible(run);
}

// Runs the Gibbs steps of all chains. PCD starts from the state of the last pass; CD starts from
// the visible means that the data gave (FirstMeans). Leaves the visible units u at the ends of the
// chains in ChainVisible, and the hidden units' means q there in ChainHidden.
void ContrastiveDivergence::RunChains(const RunContext& run, const BoltzmannWeights& weights,
                                      std::span<std::byte> scratch) const {
  const Device& device = run.device();
  const int64_t visible_count = chains_ * units_.visible, hidden_count = chains_ * units_.hidden;
  float *const visible = ChainVisible(run), *const hidden = ChainHidden(run);
  float* const kept = options_.persistent ? kept_chains_.At(run.State()) : nullptr;
  if (kept != nullptr) CopyFloats(device, kept, visible, visible_count);
  UnitDraw draw{run.rng_key(), run.pass_counter(), 1};
  for (int step = 0; step < options_.steps; ++step) {
    ++draw.draw;
    if (step > 0 || kept != nullptr) {
      products_->HiddenInputs(weights, visible, hidden, scratch);
      UnitMeans(device, false, hidden, hidden_count);
      DrawUnits(device, false, draw, hidden, hidden, hidden_count);
      products_->VisibleInputs(weights, hidden, visible, scratch);
      UnitMeans(device, units_.gaussian, visible, visible_count);
    }
    ++draw.draw;
    DrawUnits(device, units_.gaussian, draw, visible, visible, visible_count);
  }
  if (kept != nullptr) CopyFloats(device, visible, kept, visible_count);
  products_->HiddenInputs(weights, visible, hidden, scratch);
  UnitMeans(device, false, hidden, hidden_count);
}

void ContrastiveDivergence::MeasureMeans(const RunContext& run, const float* means) const {
  MapRows(run.device(), units_.hidden, records_,
          MeasureRow{means, kept_mean_.At(run.State()), records_, units_.hidden,
                     options_.sparsity_decay});
}

void ContrastiveDivergence::AddGradient(const RunContext& run, const BoltzmannWeights& weights,
                                        const float* means, const float* scale,
                                        std::span<std::byte> scratch) const {
  const Device& device = run.device();
  const bool sparse = options_.sparsity_target > 0;
  RunChains(run, weights, scratch);
  if (sparse) MeasureMeans(run, means);
  const int64_t rows = records_ + chains_;
  const float per_record = 1 / static_cast<float>(records_);
  const float per_chain = 1 / static_cast<float>(chains_);
  float *const hidden = hidden_.At(run.Workspace()), *const visible = Visible(run);
  ForEach(device, rows * units_.hidden,
          HiddenFactors{means, sparse ? kept_mean_.At(run.State()) : nullptr, scale, hidden,
                        records_ * units_.hidden, units_.hidden, per_record, per_chain,
                        options_.sparsity_target, options_.sparsity_cost});
  if (run.GradParam(0) != nullptr) {
    gradient_->Run(hidden, visible, nullptr, run.GradParam(0), scratch);
  }
  if (run.GradParam(1) != nullptr) {
    AddRowSums(device, hidden, {rows, units_.hidden}, run.GradParam(1));
  }
  if (run.GradParam(2) == nullptr) return;
  ForEach(device, rows * units_.visible,
          VisibleFactors{scale, visible, records_ * units_.visible, per_record, per_chain});
  AddRowSums(device, visible, {rows, units_.visible}, run.GradParam(2));
}

}  // namespace trainer
