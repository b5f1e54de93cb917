#include "preflight/class_balance.h"

#include <utility>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// A class of the labels, and the number of its records.
struct CountedClass {
  int label = 0;
  int64_t records = 0;
};

// Returns the line that balances the classes, or both lines that do.
std::string LinesToAdd(const BalanceFields& fields) {
  const std::string sampling =
      fields.sampling.empty() ? "" : Join("sampling: BALANCED to ", fields.sampling);
  if (!fields.takes_power) return sampling;
  const std::string power = "class_weight_power: 1 to loss_param";
  return sampling.empty() ? power : Join(power, ", or ", sampling);
}

}  // namespace

BalanceFields BalanceFieldsOf(const LayerSpec& reader, const LayerSpec& data) {
  const caffe::LossParameter& loss = reader.proto().loss_param();
  BalanceFields fields;
  fields.is_loss = reader.type() != "Accuracy";
  fields.is_weighted = loss.class_weight_size() > 0 || loss.has_class_weight_power() ||
                       reader.type() == "InfogainLoss";  // its matrix weighs classes
  fields.takes_power = reader.type() == "SoftmaxWithLoss" || reader.type() == "SoftmaxFocalLoss";
  fields.where = reader.proto().has_loss_param() ? reader.Where("loss_param") : reader.Where();
  for (const auto& [type, param] :
       {std::pair("Data", "data_param"), std::pair("ImageData", "image_data_param")}) {
    if (data.type() != type) continue;
    fields.sampling =
        Join(param, " of layer '", data.name(), "' (", data.Where(param).ToString(), ")");
  }
  return fields;
}

std::string DescribeImbalance(const DataAudit& data, const LabelConsumer& use,
                              const BalanceFields& fields) {
  constexpr int64_t kMostRatio = 10, kSamplePerClass = 50;
  if (!fields.is_loss || fields.is_weighted || data.balanced) return "";
  if (!data.all_labels && data.examined < kSamplePerClass * use.classes) return "";
  CountedClass least, most;
  for (const auto& [label, seen] : data.labels) {
    const int index = use.ClassOf(label);
    if (index < 0) continue;
    if (least.records == 0 || seen.count < least.records) least = {index, seen.count};
    if (seen.count > most.records) most = {index, seen.count};
  }
  if (least.records == 0 || most.records < kMostRatio * least.records) return "";
  const std::string lines = LinesToAdd(fields);
  if (lines.empty()) return "";
  return Join("the classes of ", data.source, " are unbalanced, ",
              data.all_labels ? "" : "in a sample about ", most.records / least.records,
              " : 1: class ", most.label, " has ", most.records, " records and class ", least.label,
              " has ", least.records, ", so the net may learn to ignore class ", least.label,
              "; add ", lines);
}

}  // namespace trainer
