#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "trainer/net/net.h"
#include "trainer/net/weights.h"

namespace trainer {

// Copies the weights of several files into nets by layer name and logs the result: counts, and the
// first names of layers without a match.
class WeightLoader {
 public:
  explicit WeightLoader(std::span<Net* const> nets) : nets_(nets.begin(), nets.end()) {}

  // Call before Copy, if the nets will be trained and the first one is the training net: layers
  // that one of `reset` names (see NamePattern) keep the values of their fillers, and so does the
  // last layer with weights if its size in the file differs. Finish reports both. Throws kUsage if
  // an item of `reset` matches no layer with weights.
  void ForTraining(const std::vector<std::string>& reset);

  // Returns the file of the first net, for ReadModel.
  std::string net_file() const;

  // Throws kData if no layer of the file is in any net, and what CopyWeights throws.
  void Copy(const caffe::NetParameter& model, const std::string& file);

  // Returns whether a file had weights for this layer.
  bool HasLoaded(const std::string& layer) const { return loaded_.contains(layer); }
  // Returns the layers with weights that no file had, in net order, without those of ForTraining.
  std::vector<std::string> Missing() const;
  // Call after the last file: reports layers that keep the values of their fillers.
  void Finish() const;

 private:
  void ReportKept() const;

  std::vector<Net*> nets_;
  CopyOptions options_;
  std::map<std::string, std::string>
      kept_;                               // layers of ForTraining, and their sizes if they differ
  std::set<std::string> loaded_;           // layer names found in any file so far
  std::vector<std::string> with_weights_;  // layers of the nets that have weights, in net order
};

}  // namespace trainer
