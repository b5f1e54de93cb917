#pragma once

#include <map>
#include <set>
#include <string>

#include "import/import_graph.h"

namespace trainer {

// Chooses names of layers as a person would: from the weights' names, the modules of PyTorch that
// the node's name has ("/layer1/layer1.0/conv1/Conv" is layer1.0.conv1), or the name itself.
class LayerNames {
 public:
  // Returns a name that was not returned before. `suffix` is for further layers of a node.
  std::string Choose(const ImportGraph& graph, const ImportNode& node, const std::string& suffix);
  // Returns `name`, or `name` with a number if it was returned before.
  std::string Unique(const std::string& name);

 private:
  std::set<std::string> used_;
  std::map<std::string, int> numbers_;  // how many numbers were tried for a name
  std::map<std::string, int> counts_;   // of nodes without a name, by their word
};

}  // namespace trainer
