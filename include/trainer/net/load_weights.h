#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// Copies the weights of several files into nets by layer name and logs the result: counts, and the
// first names of layers without a match.
class WeightLoader {
 public:
  explicit WeightLoader(std::span<Net* const> nets) : nets_(nets.begin(), nets.end()) {}

  // Throws kData if no layer of the file is in any net, and what CopyWeights throws.
  void Copy(const caffe::NetParameter& model, const std::string& file);

  // Call after the last file: warns of layers that keep the values of their fillers.
  void Finish() const;

 private:
  std::vector<Net*> nets_;
  std::set<std::string> loaded_;           // layer names found in any file so far
  std::vector<std::string> with_weights_;  // layers of the nets that have weights, in net order
};

}  // namespace trainer
