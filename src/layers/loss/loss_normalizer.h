#pragma once
// The last step of a loss layer: the sum over rows and its divisor.

#include "shared/class_labels.h"
#include "trainer/backend/loops/reduce.h"
#include "trainer/layers/all_reduce.h"
#include "trainer/layers/label_count.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Marks in an array of row losses, far below any loss. ReportBadLabels reports what is wrong with a
// bad row.
inline constexpr float kIgnoredRow = -3e38f, kBadRow = -3.3e38f;

// Values that the forward pass keeps for the backward pass, at the start of the layer's workspace.
struct LossAccumulators {
  float sum, ignored;
  float normalizer, weight;
  float pad[12];  // pads to a whole cache line
};

// Returns the rule with the ignore_label of loss_param.
LabelRule LabelRuleOf(const LayerSpec& spec, int64_t classes);

// Divides by loss_param's normalization: FULL all rows, VALID the rows that are not ignored,
// BATCH_SIZE `outer`, NONE 1; never by less than 1. If rows have weights, VALID is the sum of the
// weights, or 1 if the sum is 0.
//
// Replicas average their losses and gradients, so each divides by the number for all their batches,
// divided by the number of replicas: the average then equals the value of one replica with all the
// batches. VALID is counted over the replicas if counts may differ; nothing else is exchanged.
class LossNormalizer final : public LabelCount {
 public:
  // `standard` is used if loss_param does not set a normalization. The old `normalize` is used only
  // if `normalization` is not set: true is VALID, false BATCH_SIZE.
  LossNormalizer(const LayerSpec& spec, caffe::LossParameter::NormalizationMode standard);

  // Takes the mean over `rows` rows, whatever loss_param says.
  explicit LossNormalizer(int64_t rows)
      : mode_(caffe::LossParameter::FULL), has_ignore_(false), rows_(rows), outer_(rows) {}

  // Sets the replicas over which VALID counts; without this call, this replica alone.
  void Use(const AllReduceFn& replicas) { replicas_ = replicas; }

  // Sets the number of rows of the loss, and the divisor of BATCH_SIZE (`outer`). Called in Setup.
  void Plan(int64_t rows, int64_t outer) {
    rows_ = rows;
    outer_ = outer;
  }

  // out = sum of `loss`, which has a mark or a number per row, divided by the normalizer. `weight`,
  // if not null, holds a weight per row, which `loss` already includes.
  void Forward(const Device& device, const float* loss, LossAccumulators* head, float* out,
               const float* weight = nullptr);

  bool Varies() const override;
  void BeginPass(int pass, int passes) override;
  // Returns the labels of the passes before the last one divided by the labels up to it.
  float ScaleOfEarlier() const override { return scale_of_earlier_; }

 private:
  float FixedDivisor(float replicas) const;
  void SumCounts(const Device& device, bool weighted, LossAccumulators* head) const;
  void AddPassCount(const Device& device, bool weighted, LossAccumulators* head);

  caffe::LossParameter::NormalizationMode mode_;
  bool has_ignore_, has_weights_ = false;
  int passes_ = 1;
  double counted_ = 0;  // labels of this update's passes so far, on all replicas
  float scale_of_earlier_ = 1;
  int64_t rows_ = 0, outer_ = 0;
  AllReduceFn replicas_;
};

}  // namespace trainer
