#pragma once
// Finds training sets in which some classes have far fewer records than others.

#include <string>

#include "trainer/base/error/error.h"
#include "trainer/config/layer_spec.h"
#include "trainer/datasets/audit.h"
#include "trainer/metrics/label_consumers.h"

namespace trainer {

// The fields of a loss and of its data layer that can balance classes.
struct BalanceFields {
  bool is_loss = false;      // false for a layer that only measures, such as Accuracy
  bool is_weighted = false;  // the loss weighs classes by fields of its own
  bool takes_power = false;  // the loss supports class_weight_power
  SourceRef where;           // the line of loss_param, or of the layer
  std::string sampling;  // "data_param of layer 'digits' (net.prototxt:3:1)"; "" without `sampling`
};
BalanceFields BalanceFieldsOf(const LayerSpec& reader, const LayerSpec& data);

// Returns a sentence if one class has at least ten times as many records as another and no field
// corrects that: the two classes with their numbers of records, and the line to add. Otherwise
// returns "". If `data` covers only a sample, it must have 50 records for each class.
std::string DescribeImbalance(const DataAudit& data, const LabelConsumer& use,
                              const BalanceFields& fields);

}  // namespace trainer
