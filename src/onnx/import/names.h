#pragma once

#include <map>
#include <set>
#include <string>

#include "import/import_graph.h"

namespace trainer {

// Chooses readable names for layers. The sources are the weights' names, the PyTorch modules in the
// node's name ("/layer1/layer1.0/conv1/Conv" becomes layer1.0.conv1), and the node's name itself.
class LayerNames {
 public:
  // Returns a name that was not returned before. `suffix` distinguishes further layers of the same
  // node.
  std::string Choose(const ImportGraph& graph, const ImportNode& node, const std::string& suffix);
  // Returns `name`, or `name` with a number if it was returned before.
  std::string Unique(const std::string& name);

 private:
  std::set<std::string> used_;
  std::map<std::string, int> numbers_;  // how many numbers were tried, by name
  std::map<std::string, int> counts_;   // how many nodes have no name, by word
};

}  // namespace trainer
