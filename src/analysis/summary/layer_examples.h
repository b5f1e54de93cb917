#pragma once
// An example of each layer type.

#include <string>
#include <vector>

namespace trainer {

// An example of a layer type, with the shapes that its blobs and weights have in training.
struct LayerExample {
  std::string text;                  // the layer in a prototxt
  std::vector<std::string> inputs;   // "data (8, 3, 32, 32)"
  std::vector<std::string> outputs;  // empty for a layer that reads files
  std::vector<std::string> weights;  // only shapes, in the order of a .caffemodel
};

// Plans the example's net, so the shapes are the same as in training. Throws kInternal for a type
// without an example.
LayerExample MakeExample(const std::string& type);

}  // namespace trainer
