#pragma once

#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/net/net.h"

namespace trainer {

// The weighted mean of one element of a net's output over batches, as a sum and its weight.
struct OutputMean {
  std::string name;  // of the output
  double sum = 0, weight = 0;
  float loss_weight = 0;

  double mean() const { return sum / weight; }
};

// Accumulates the means of all elements of all outputs of a net.
class OutputMeans {
 public:
  // Adds the outputs of one pass with the weight of its batch, and logs them. A shorter last batch
  // (`is_rest`) may have fewer elements, if an output has one element per record; otherwise throws
  // kConfig if the number of elements changes.
  void Add(const Net& net, double weight, bool is_rest);

  const std::vector<OutputMean>& means() const { return means_; }

 private:
  int batches_ = 0;
  std::vector<OutputMean> means_;
  std::vector<float> host_;
};

// Returns a line per element, as Caffe logs it: "loss = 0.25 (* 1 = 0.25 loss)".
std::vector<std::string> ToLines(const std::vector<OutputMean>& means);
Json ToJson(const std::vector<OutputMean>& means);

}  // namespace trainer
