#include "trainer/analysis/summary/net_graph.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "summary/graph_layout.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"

namespace trainer {
namespace {

constexpr double kLineHeight = 16, kLetterWidth = 6.8;

// Fills of the boxes on light and dark pages.
struct BoxStyle {
  const char *kind, *light, *dark;
};
constexpr BoxStyle kBoxStyles[] = {{"data", "#d9ead3", "#2f4a2c"},
                                   {"loss", "#f4cccc", "#5a2b2b"},
                                   {"learns", "#cfe2f3", "#24435e"},
                                   {"pools", "#fff2cc", "#57491c"},
                                   {"other", "#eeeeee", "#3a3d40"}};

// Returns the colour of a box on light pages. `kind` must be in kBoxStyles.
const char* LightFill(const std::string& kind) {
  return std::ranges::find(kBoxStyles, kind, &BoxStyle::kind)->light;
}

// Returns " 64, 3x3 / 2, 4 groups" for a convolution (outputs, kernel, stride), the outputs of an
// InnerProduct, or the method of a pooling; "" for other layers.
std::string KernelLabel(const caffe::LayerParameter& layer) {
  const caffe::ConvolutionParameter& conv = layer.convolution_param();
  const caffe::PoolingParameter& pool = layer.pooling_param();
  std::string text;
  if (layer.has_convolution_param()) {
    text = Join(" ", conv.num_output());
    if (conv.kernel_size_size() > 0)
      text += Join(", ", conv.kernel_size(0), "x", conv.kernel_size(0));
    if (conv.has_kernel_h()) text += Join(", ", conv.kernel_h(), "x", conv.kernel_w());
    if (conv.stride_size() > 0 && conv.stride(0) > 1) text += Join(" / ", conv.stride(0));
    if (conv.group() > 1) text += Join(", ", conv.group(), " groups");
  } else if (layer.has_inner_product_param()) {
    text = Join(" ", layer.inner_product_param().num_output());
  } else if (layer.has_pooling_param()) {
    text = " " + caffe::PoolingParameter::PoolMethod_Name(pool.pool());
    if (pool.global_pooling()) text += ", global";
    if (pool.has_kernel_size()) text += Join(", ", pool.kernel_size(), "x", pool.kernel_size());
    if (pool.stride() > 1) text += Join(" / ", pool.stride());
  }
  return text;
}

// Returns the style of a layer's box. Accuracy and layers without tops look like losses.
std::string BoxKind(const caffe::LayerParameter& layer) {
  if (layer.bottom_size() == 0) return "data";
  if (layer.type().ends_with("Loss") || layer.top_size() == 0) return "loss";
  if (layer.type() == "Accuracy") return "loss";
  if (layer.has_convolution_param() || layer.has_inner_product_param()) return "learns";
  return layer.has_pooling_param() ? "pools" : "other";
}

// Returns "64x20x24x24", or "scalar".
std::string ShapeLabel(const Shape& shape) {
  if (shape.Rank() == 0) return "scalar";
  std::string text;
  for (int axis = 0; axis < shape.Rank(); ++axis) text += Join(axis == 0 ? "" : "x", shape[axis]);
  return text;
}

// Returns "431,080 parameters", or "" for none.
std::string ParametersLabel(int64_t count) {
  return count == 0 ? "" : GroupedDigits(count) + (count == 1 ? " parameter" : " parameters");
}

// Escapes text for XML, or for a quoted string of DOT.
std::string EscapeLabel(const std::string& text, bool xml) {
  std::string out;
  for (const char c : EscapeControl(text)) {
    if (xml && c == '<') {
      out += "&lt;";
    } else if (xml && c == '&') {
      out += "&amp;";
    } else if (!xml && (c == '"' || c == '\\')) {
      out += {'\\', c};
    } else {
      out += c;
    }
  }
  return out;
}

// Returns the SVG path of an edge. It curves between two rows of boxes and is vertical within a
// row, where it would otherwise cross boxes.
std::string EdgePath(const GraphLayout& layout, const LayoutEdge& edge) {
  const LayoutNode &from = layout.nodes[edge.from], &to = layout.nodes[edge.to];
  double x = from.x, y = from.y + from.height / 2;
  std::string path = Join("M", Fixed(x, 1), ",", Fixed(y, 1));
  const auto move_to = [&](double to_x, double to_y) {
    const double half = (y + to_y) / 2;
    if (to_x == x) {
      path += Join(" L", Fixed(to_x, 1), ",", Fixed(to_y, 1));
    } else {
      path += Join(" C", Fixed(x, 1), ",", Fixed(half, 1), " ", Fixed(to_x, 1), ",", Fixed(half, 1),
                   " ", Fixed(to_x, 1), ",", Fixed(to_y, 1));
    }
    x = to_x;
    y = to_y;
  };
  for (const auto& [bend_x, bend_y] : edge.bends) move_to(bend_x, bend_y);
  move_to(to.x, to.y - to.height / 2 - 4);
  return path;
}

// Returns the fonts, and the colours for dark pages. The colours for light pages are attributes of
// the elements.
std::string SvgStyle() {
  std::string dark =
      ".net .page{fill:#181a1b}.net text{fill:#e6e6e6}.net .blob{fill:#aaaaaa}"
      ".net .edge,.net rect{stroke:#999999}.net .tip{fill:#999999}";
  for (const BoxStyle& style : kBoxStyles)
    dark += Join(".net .", style.kind, "{fill:", style.dark, "}");
  return Join(
      "<style>.net text{font:12px sans-serif;text-anchor:middle}.net .name{font-weight:bold}"
      ".net .blob{font-size:10px;text-anchor:start}@media(prefers-color-scheme:dark){",
      dark, "}</style>\n");
}

}  // namespace

NetShapes PlanShapes(const NetSpec& spec, const caffe::NetState& state) {
  NetShapes shapes;
  try {
    const WarningsOnly warnings_only;
    const std::unique_ptr<Device> device = MakeCpuDevice();
    ParamStore params(*device);
    const std::unique_ptr<const Graph> graph =
        Compile(spec, {.state = state, .log = false}, *device, params);
    for (const Node& node : graph->nodes) {
      auto& layer = shapes.layers[node.spec.name()];
      for (const std::string& top : node.spec.proto().top()) {
        layer.outputs.push_back(ShapeLabel(graph->Find(top).shape));
      }
    }
    for (const Param* param : graph->params) {
      shapes.layers[param->layer].parameters += param->count();
      shapes.parameters += param->count();
    }
  } catch (const Error& error) {
    shapes = {};
    shapes.why_not = error.what();
  }
  return shapes;
}

std::string GroupedDigits(int64_t number) {
  std::string text = Join(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

NetGraph::NetGraph(const std::vector<LayerSpec>& layers, const NetShapes& shapes) {
  std::map<std::string, size_t> makers;
  for (const LayerSpec& layer : layers) AddLayer(layer.proto(), shapes, &makers);
}

void NetGraph::AddLayer(const caffe::LayerParameter& layer, const NetShapes& shapes,
                        std::map<std::string, size_t>* makers) {
  const auto known = shapes.layers.find(layer.name());
  const NetShapes::LayerShapes planned =
      known == shapes.layers.end() ? NetShapes::LayerShapes{} : known->second;
  const std::string parameters = ParametersLabel(planned.parameters);
  const bool in_place = layer.bottom_size() == 1 && layer.top_size() == 1 &&
                        layer.bottom(0) == layer.top(0) && makers->count(layer.bottom(0)) > 0;
  if (in_place) {
    std::vector<std::string>& lines = boxes_[makers->at(layer.bottom(0))].lines;
    lines.push_back(Join("+ ", layer.type(), parameters.empty() ? "" : ", ", parameters));
    return;
  }
  const size_t self = boxes_.size();
  Box box{{layer.name(), layer.type() + KernelLabel(layer)}, BoxKind(layer)};
  if (!planned.outputs.empty()) box.lines.push_back(JoinList(planned.outputs));
  if (!parameters.empty()) box.lines.push_back(parameters);
  boxes_.push_back(std::move(box));
  for (const std::string& bottom : layer.bottom()) {
    const auto found = makers->find(bottom);
    if (found == makers->end()) continue;  // building the net reports it
    const std::string& from = boxes_[found->second].lines[0];
    arrows_.push_back({found->second, self, from == bottom ? "" : bottom});
  }
  for (const std::string& top : layer.top()) (*makers)[top] = self;
}

std::string NetGraph::Dot(const std::string& title) const {
  std::string out = Join("digraph \"", EscapeLabel(title, false),
                         "\" {\n  node [shape=box, style=\"filled,rounded\"];\n");
  for (size_t i = 0; i < boxes_.size(); ++i) {
    std::string label;
    for (const std::string& line : boxes_[i].lines) {
      label += (label.empty() ? "" : "\\n") + EscapeLabel(line, false);
    }
    out += Join("  n", i, " [label=\"", label, "\", fillcolor=\"", LightFill(boxes_[i].kind),
                "\"];\n");
  }
  for (const Arrow& arrow : arrows_) {
    out += Join("  n", arrow.from, " -> n", arrow.to);
    if (!arrow.blob.empty()) out += Join(" [label=\"", EscapeLabel(arrow.blob, false), "\"]");
    out += ";\n";
  }
  return out + "}\n";
}

std::string NetGraph::Svg(const std::string& title) const {
  GraphLayout layout;
  for (const Box& box : boxes_) {
    size_t letters = 0;
    for (const std::string& line : box.lines) letters = std::max(letters, line.size());
    layout.nodes.push_back({.width = 20 + kLetterWidth * static_cast<double>(letters),
                            .height = 8 + kLineHeight * static_cast<double>(box.lines.size())});
  }
  for (const Arrow& arrow : arrows_) layout.edges.push_back({arrow.from, arrow.to, {}});
  ComputeLayout(&layout);
  const std::string width = Fixed(layout.width, 0), height = Fixed(layout.height, 0);
  std::string out =
      Join("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"net\" width=\"", width,
           "\" height=\"", height, "\" viewBox=\"0 0 ", width, " ", height, "\">\n<title>",
           EscapeLabel(title, true), "</title>\n", SvgStyle(),
           "<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"4\" refY=\"3\" "
           "orient=\"auto\"><path class=\"tip\" fill=\"#555555\" d=\"M0,0 L6,3 L0,6 "
           "z\"/></marker></defs>"
           "\n<rect class=\"page\" width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  for (size_t i = 0; i < arrows_.size(); ++i) {
    out += Join("<path class=\"edge\" d=\"", EdgePath(layout, layout.edges[i]),
                "\" fill=\"none\" stroke=\"#555555\" marker-end=\"url(#tip)\"/>\n");
    if (arrows_[i].blob.empty()) continue;
    const LayoutNode& to = layout.nodes[arrows_[i].to];
    out += Join("<text class=\"blob\" fill=\"#777777\" x=\"", Fixed(to.x + 4, 1), "\" y=\"",
                Fixed(to.y - to.height / 2 - 8, 1), "\">", EscapeLabel(arrows_[i].blob, true),
                "</text>\n");
  }
  for (size_t i = 0; i < boxes_.size(); ++i) {
    const LayoutNode& node = layout.nodes[i];
    const double left = node.x - node.width / 2, top = node.y - node.height / 2;
    out +=
        Join("<rect class=\"", boxes_[i].kind, "\" x=\"", Fixed(left, 1), "\" y=\"", Fixed(top, 1),
             "\" width=\"", Fixed(node.width, 1), "\" height=\"", Fixed(node.height, 1),
             "\" rx=\"6\" fill=\"", LightFill(boxes_[i].kind), "\" stroke=\"#555555\"/>\n");
    for (size_t k = 0; k < boxes_[i].lines.size(); ++k) {
      out += Join("<text", k == 0 ? " class=\"name\"" : "", " x=\"", Fixed(node.x, 1), "\" y=\"",
                  Fixed(top + kLineHeight * static_cast<double>(k + 1), 1), "\">",
                  EscapeLabel(boxes_[i].lines[k], true), "</text>\n");
    }
  }
  return out + "</svg>\n";
}

}  // namespace trainer
