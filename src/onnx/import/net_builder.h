#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/import_graph.h"
#include "import/names.h"

namespace trainer {

// Builds the net layer by layer. A blob is an index, and a layer that works in place creates a new
// blob with the same name.
class NetBuilder {
 public:
  // Adds an Input layer for each input of the graph.
  explicit NetBuilder(ImportGraph& graph);

  ImportGraph& graph() const { return graph_; }
  const Dims& DimsOf(int blob) const { return blobs_[static_cast<size_t>(blob)].dims; }

  // Returns the blob that holds an input of the node. Throws by graph.Refuse if the input is a
  // constant, because the node's layer cannot read constants.
  int BlobOf(const ImportNode& node, size_t input) const;
  // Declares that a blob holds output i of the node.
  void SetOutput(const ImportNode& node, size_t i, int blob);

  // Holds a layer and its first top.
  struct NewLayer {
    caffe::LayerParameter* layer;
    int top;
  };
  // Adds a layer with a new blob of shape `dims`. `suffix` completes the name if the node needs
  // several layers.
  NewLayer Add(const ImportNode& node, const std::string& type, const std::vector<int>& bottoms,
               const Dims& dims, const std::string& suffix = "");
  // Adds another top to the layer.
  int AddTop(const NewLayer& to, const Dims& dims, const std::string& suffix);
  // Adds a layer with one bottom and an output of the same shape. The layer works in place if
  // nothing else reads the bottom.
  NewLayer AddUnary(const ImportNode& node, const std::string& type, int bottom,
                    const std::string& suffix = "");
  // Appends an array of weights to the layer. Throws kData if a number is not finite, and as
  // ImportGraph::CountFolded does.
  void AddWeight(const ImportNode& node, const NewLayer& to, const Dims& dims,
                 std::span<const float> values);
  // Fixes the first `arrays` weights of the layer in training.
  void KeepWeights(const NewLayer& to, int arrays);

  // Return a blob with the same numbers in another shape, or with the axes in another order. They
  // add no layer if the blob already has that shape or order, and they replace reshapes and
  // permutations that only lead to the blob.
  int Reshape(const ImportNode& node, int blob, const Dims& dims, const std::string& suffix = "");
  int Permute(const ImportNode& node, int blob, const Dims& order, const std::string& suffix = "");
  // Adds a Power layer, (shift + scale * x) ^ power, and returns its top.
  int Power(const ImportNode& node, int blob, float scale, float shift, float power = 1,
            const std::string& suffix = "");

  // Returns the tops of Slice layers by blob, axis and lengths of the parts. Nodes that take parts
  // of the same blob share one Slice layer.
  std::map<Dims, std::vector<int>>& slices() { return slices_; }
  // Declares that one more layer reads the blob. Returns false if a layer has overwritten it.
  bool Share(int blob);

  void Note(const std::string& note) { notes_.push_back(note); }
  // Removes the layers that no output needs, and adds a Silence layer for unused tops.
  ImportedNet Finish();

 private:
  struct Blob {
    std::string name;
    Dims dims;
    bool is_pinned = false;       // several layers or the user may read it
    bool is_overwritten = false;  // a layer worked in place on it
    int source = -1;  // index of the blob with the same numbers before a reshape or permutation
    Dims order;       // order of the axes in a permuted blob
  };

  int NewBlob(const std::string& name, Dims dims);
  // Returns the blob from which a reshaped (or permuted) blob was created, or -1 if the layer
  // between them must stay.
  int SourceOf(int blob, bool permuted);
  void AddReshapeDims(const Dims& from, const Dims& to, caffe::LayerParameter* layer) const;
  void RemoveUnused(caffe::NetParameter* net) const;
  void SilenceUnused(caffe::NetParameter* net);

  ImportGraph& graph_;
  LayerNames names_;
  caffe::NetParameter net_, weights_;
  std::map<std::string, caffe::LayerParameter*> weights_of_;  // by layer name
  std::vector<Blob> blobs_;
  std::map<int, int> blob_of_value_;
  std::map<Dims, std::vector<int>> slices_;
  std::vector<std::string> notes_;
};

}  // namespace trainer
