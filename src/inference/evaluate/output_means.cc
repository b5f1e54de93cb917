#include "trainer/inference/evaluate/output_means.h"

#include <glog/logging.h>

#include "trainer/base/text/text.h"
#include "trainer/net/output_counts.h"

namespace trainer {

// A shorter last batch has fewer elements per output, so the first element of each output is found
// by its name.
void OutputMeans::Add(const Net& net, double weight, bool is_rest) {
  const int batch = batches_++;
  size_t element = 0, count = 0;
  for (const NetOutput& output : net.outputs()) count += output.value.Count();
  if (batch > 0 && !is_rest) RequireEqualCounts(means_.size(), count);
  for (const NetOutput& output : net.outputs()) {
    host_.resize(static_cast<size_t>(output.value.Count()));
    net.ReadNchw(output.value, host_);
    while (batch > 0 && means_[element].name != output.name) ++element;
    for (const float value : host_) {
      if (batch == 0) means_.push_back({output.name, 0, 0, output.loss_weight});
      means_[element].weight += weight;
      means_[element++].sum += value * weight;
      LOG(INFO) << Join("Batch ", batch, ", ", output.name, " = ", value);
    }
  }
}

std::vector<std::string> ToLines(const std::vector<OutputMean>& means) {
  std::vector<std::string> lines;
  for (const OutputMean& one : means) {
    const auto mean = static_cast<float>(one.mean());
    const std::string loss = one.loss_weight == 0 ? ""
                                                  : Join(" (* ", one.loss_weight, " = ",
                                                         one.loss_weight * mean, " loss)");
    lines.push_back(Join(one.name, " = ", mean, loss));
  }
  return lines;
}

Json ToJson(const std::vector<OutputMean>& means) {
  Json list = Json::Array();
  for (const OutputMean& one : means) {
    list.Push(Json::Object()
                  .Set("name", one.name)
                  .Set("mean", one.mean())
                  .Set("loss_weight", one.loss_weight));
  }
  return list;
}

}  // namespace trainer
