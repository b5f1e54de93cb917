#pragma once
// Draws a net as a graph: for `trainer draw` and for the page of `trainer report`.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"
#include "trainer/config/net_spec.h"

namespace trainer {

// Output shapes and numbers of parameters, by the name of the layer.
struct NetShapes {
  struct LayerShapes {
    std::vector<std::string> outputs;  // "64x20x24x24", one for each top
    int64_t parameters = 0;            // that the layer owns
  };
  std::map<std::string, LayerShapes> layers;
  int64_t parameters = 0;
  std::string why_not;  // why the net could not be built, e.g. a database is missing; else ""
};

// Plans the net for its shapes, without memory for values. Does not throw.
NetShapes ShapesOf(const NetSpec& spec, const caffe::NetState& state);

// A number with a comma before each three digits: "431,080".
std::string GroupedDigits(int64_t number);

class NetPicture {
 public:
  NetPicture(const std::vector<LayerSpec>& layers, const NetShapes& shapes);

  size_t boxes() const { return boxes_.size(); }
  // A whole <svg> element with its style, light or dark as the page that shows it.
  std::string Svg(const std::string& title) const;
  std::string Dot(const std::string& title) const;

 private:
  struct Box {
    std::vector<std::string> lines;  // the layer's name first
    std::string kind;                // a class of the style: "data", "loss", ...
  };
  struct Arrow {
    size_t from = 0, to = 0;
    std::string blob;  // "" if it has the name of the layer that made it
  };
  void AddLayer(const caffe::LayerParameter& layer, const NetShapes& shapes,
                std::map<std::string, size_t>* makers);

  std::vector<Box> boxes_;
  std::vector<Arrow> arrows_;
};

}  // namespace trainer
