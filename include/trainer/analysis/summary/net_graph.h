#pragma once
// Draws a net as a graph, as SVG or in Graphviz's DOT language.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"
#include "trainer/config/net_spec.h"

namespace trainer {

// Output shapes and numbers of parameters of each layer, by its name.
struct NetShapes {
  struct LayerShapes {
    std::vector<std::string> outputs;  // "64x20x24x24", one per top
    int64_t parameters = 0;            // that the layer owns
  };
  std::map<std::string, LayerShapes> layers;
  int64_t parameters = 0;
  std::string why_not;  // why the net cannot be planned, such as a missing database; else ""
};

// Plans the net without allocating its memory. Does not throw: sets `why_not`.
NetShapes PlanShapes(const NetSpec& spec, const caffe::NetState& state);

// Returns the number with a comma before every three digits: "431,080". It must not be negative.
std::string GroupedDigits(int64_t number);

// A drawing with a box for each layer and an arrow for each blob. A layer that works in place is
// named in the box of the layer that made the blob.
class NetGraph {
 public:
  NetGraph(const std::vector<LayerSpec>& layers, const NetShapes& shapes);

  size_t boxes() const { return boxes_.size(); }
  // Returns an <svg> element with its style, light or dark like the page that shows it.
  std::string Svg(const std::string& title) const;
  // Returns the graph in the language of Graphviz, without positions.
  std::string Dot(const std::string& title) const;

 private:
  struct Box {
    std::vector<std::string> lines;  // the layer's name first
    std::string kind;                // its style: "data", "loss", ...
  };
  struct Arrow {
    size_t from = 0, to = 0;
    std::string blob;  // "" if it has the name of its layer
  };
  // Adds a box with an arrow from the maker of each bottom. `makers` maps each blob to the box of
  // the layer that wrote it last.
  void AddLayer(const caffe::LayerParameter& layer, const NetShapes& shapes,
                std::map<std::string, size_t>* makers);

  std::vector<Box> boxes_;
  std::vector<Arrow> arrows_;
};

// Returns whether WriteNetGraph knows the ending of the file: .svg, .dot, .png or .pdf.
bool IsGraphFile(const std::string& path);

// Writes the graph in the format of the file's ending. .svg and .dot need no other program. For
// .png and .pdf, Graphviz's `dot` draws the graph; without it, writes PATH.dot and throws
// kUnavailable with the command to run.
void WriteNetGraph(const NetGraph& graph, const std::string& title, const std::string& path);

}  // namespace trainer
