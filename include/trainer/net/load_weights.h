#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// Copies the weights of several files into nets by layer name, and tells the log what became of
// them: counts, and the first names of layers that did not find each other.
class WeightLoader {
 public:
  explicit WeightLoader(std::span<Net* const> nets) : nets_(nets.begin(), nets.end()) {}

  // Throws kData when no layer of the file is in any net, and as CopyWeights does.
  void Copy(const caffe::NetParameter& model, const std::string& file);

  // After the last file: warns of the layers that keep what their fillers gave.
  void Finish() const;

 private:
  std::vector<Net*> nets_;
  std::set<std::string> loaded_;           // from any file
  std::vector<std::string> with_weights_;  // layers of the nets, in their order
};

}  // namespace trainer
