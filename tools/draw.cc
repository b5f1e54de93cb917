#include <glog/logging.h>

#include <iostream>
#include <map>

#include "graph_layout.h"
#include "shared_flags.h"
#include "table.h"
#include "trainer/base/atomic_file.h"
#include "trainer/base/text.h"
#include "trainer/config/net_layers.h"
#include "verb.h"

namespace trainer {
namespace {

struct Box {
  std::string name, detail;
  std::string colour;
};

struct Arrow {
  size_t from = 0, to = 0;
  std::string blob;  // "" when it bears the name of the layer that made it
};

struct Picture {
  std::vector<Box> boxes;
  std::vector<Arrow> arrows;
};

std::string KernelText(const caffe::LayerParameter& layer) {
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

std::string ColourOf(const caffe::LayerParameter& layer) {
  if (layer.bottom_size() == 0) return "#d9ead3";
  if (layer.type().ends_with("Loss") || layer.top_size() == 0) return "#f4cccc";
  if (layer.type() == "Accuracy") return "#f4cccc";
  if (layer.has_convolution_param() || layer.has_inner_product_param()) return "#cfe2f3";
  return layer.has_pooling_param() ? "#fff2cc" : "#eeeeee";
}

// A layer that works in place stands in the box of the layer that made the blob.
Picture PictureOf(const std::vector<LayerSpec>& layers) {
  Picture picture;
  std::map<std::string, size_t> maker;
  for (const LayerSpec& spec : layers) {
    const caffe::LayerParameter& layer = spec.proto();
    const bool in_place = layer.bottom_size() == 1 && layer.top_size() == 1 &&
                          layer.bottom(0) == layer.top(0) && maker.count(layer.bottom(0)) > 0;
    if (in_place) {
      picture.boxes[maker.at(layer.bottom(0))].detail += " + " + layer.type();
      continue;
    }
    const size_t self = picture.boxes.size();
    picture.boxes.push_back({layer.name(), layer.type() + KernelText(layer), ColourOf(layer)});
    for (const std::string& bottom : layer.bottom()) {
      const auto found = maker.find(bottom);
      if (found == maker.end()) continue;  // the net's own check names it
      const std::string& from = picture.boxes[found->second].name;
      picture.arrows.push_back({found->second, self, from == bottom ? "" : bottom});
    }
    for (const std::string& top : layer.top()) maker[top] = self;
  }
  return picture;
}

std::string Escaped(const std::string& text, bool xml) {
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

std::string ToDot(const Picture& picture, const std::string& title) {
  std::string out = Join("digraph \"", Escaped(title, false),
                         "\" {\n  node [shape=box, style=\"filled,rounded\"];\n");
  for (size_t i = 0; i < picture.boxes.size(); ++i) {
    const Box& box = picture.boxes[i];
    out += Join("  n", i, " [label=\"", Escaped(box.name, false), "\\n", Escaped(box.detail, false),
                "\", fillcolor=\"", box.colour, "\"];\n");
  }
  for (const Arrow& arrow : picture.arrows) {
    out += Join("  n", arrow.from, " -> n", arrow.to);
    if (!arrow.blob.empty()) out += Join(" [label=\"", Escaped(arrow.blob, false), "\"]");
    out += ";\n";
  }
  return out + "}\n";
}

Drawing Place(const Picture& picture) {
  Drawing drawing;
  for (const Box& box : picture.boxes) {
    const size_t letters = std::max(box.name.size(), box.detail.size());
    drawing.nodes.push_back({.width = 20 + 6.8 * static_cast<double>(letters), .height = 40});
  }
  for (const Arrow& arrow : picture.arrows) drawing.edges.push_back({arrow.from, arrow.to, {}});
  LayOut(&drawing);
  return drawing;
}

// A curve that leaves and enters every point straight down.
std::string PathOf(const Drawing& drawing, const DrawnEdge& edge) {
  const DrawnNode &from = drawing.nodes[edge.from], &to = drawing.nodes[edge.to];
  double x = from.x, y = from.y + from.height / 2;
  std::string path = Join("M", Fixed(x, 1), ",", Fixed(y, 1));
  auto bend_to = [&](double to_x, double to_y) {
    const double half = (y + to_y) / 2;
    path += Join(" C", Fixed(x, 1), ",", Fixed(half, 1), " ", Fixed(to_x, 1), ",", Fixed(half, 1),
                 " ", Fixed(to_x, 1), ",", Fixed(to_y, 1));
    x = to_x;
    y = to_y;
  };
  for (const auto& [bend_x, bend_y] : edge.bends) bend_to(bend_x, bend_y);
  bend_to(to.x, to.y - to.height / 2 - 4);
  return path;
}

std::string ToSvg(const Picture& picture, const std::string& title) {
  const Drawing drawing = Place(picture);
  std::string out = Join(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", Fixed(drawing.width, 0), "\" height=\"",
      Fixed(drawing.height, 0), "\" font-family=\"sans-serif\" font-size=\"12\">\n", "<title>",
      Escaped(title, true), "</title>\n<defs><marker id=\"tip\" markerWidth=\"8\" ",
      "markerHeight=\"8\" refX=\"4\" refY=\"3\" orient=\"auto\"><path d=\"M0,0 L6,3 L0,6 z\"/>",
      "</marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  for (size_t i = 0; i < drawing.edges.size(); ++i) {
    out += Join("<path d=\"", PathOf(drawing, drawing.edges[i]),
                "\" fill=\"none\" stroke=\"#555555\" marker-end=\"url(#tip)\"/>\n");
    if (picture.arrows[i].blob.empty()) continue;
    const DrawnNode& to = drawing.nodes[drawing.edges[i].to];
    out += Join("<text x=\"", Fixed(to.x + 4, 1), "\" y=\"", Fixed(to.y - to.height / 2 - 8, 1),
                "\" fill=\"#777777\" font-size=\"10\">", Escaped(picture.arrows[i].blob, true),
                "</text>\n");
  }
  for (size_t i = 0; i < drawing.nodes.size(); ++i) {
    const DrawnNode& node = drawing.nodes[i];
    const Box& box = picture.boxes[i];
    const double left = node.x - node.width / 2, top = node.y - node.height / 2;
    out += Join("<rect x=\"", Fixed(left, 1), "\" y=\"", Fixed(top, 1), "\" width=\"",
                Fixed(node.width, 1), "\" height=\"", Fixed(node.height, 1), "\" rx=\"6\" fill=\"",
                box.colour, "\" stroke=\"#555555\"/>\n");
    auto line = [&](const std::string& text, double y, const char* weight) {
      out += Join("<text x=\"", Fixed(node.x, 1), "\" y=\"", Fixed(y, 1),
                  "\" text-anchor=\"middle\" font-weight=\"", weight, "\">", Escaped(text, true),
                  "</text>\n");
    };
    line(box.name, node.y - 4, "bold");
    line(box.detail, node.y + 12, "normal");
  }
  return out + "</svg>\n";
}

class Draw final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "draw a net as a picture, SVG or DOT",
        .usage = "trainer draw --model=FILE --out=FILE.svg [--phase=TEST] [flags]",
        .text =
            "A box per layer, with the layers that work in place inside it; an arrow per blob. "
            "The ending of --out says which: .svg for browsers, .dot for Graphviz. Databases and "
            "weights are not needed.",
        .examples =
            "trainer draw --model=models/lenet/train_test.prototxt --out=lenet.svg\n"
            "trainer draw --model=net.prototxt --phase=TEST --out=net.dot",
        .flags = {{.name = "model", .value = "FILE", .help = "the net", .required = true},
                  {.name = "out",
                   .value = "FILE",
                   .help = "where to write, ending in .svg or .dot",
                   .required = true},
                  ForceFlag(),
                  PhaseFlag(),
                  LevelFlag(),
                  StageFlag(),
                  SetFlag()},
    };
  }

  int Run(const Flags& flags) override {
    const std::string& path = flags.Text("out");
    const bool svg = path.ends_with(".svg");
    if (!svg && !path.ends_with(".dot")) {
      throw Error(ErrorCode::kUsage,
                  Join("--out=", path,
                       " must end in .svg or .dot; browsers show .svg, and Graphviz makes other "
                       "pictures of .dot: dot -Tpng NET.dot > NET.png"));
    }
    RefuseToReplace(flags);
    const NetSpec spec = ModelOf(flags);
    const bool train = PhaseOf(flags) == caffe::TRAIN;
    const std::vector<LayerSpec> layers = FilterLayers(spec, NetStateOf(flags, PhaseOf(flags)));
    ConnectedLayers(spec, NetStateOf(flags, PhaseOf(flags)));  // for its checks
    const Picture picture = PictureOf(layers);
    const std::string title = Join(spec.proto.name(), train ? ", phase TRAIN" : ", phase TEST");
    const std::string text = svg ? ToSvg(picture, title) : ToDot(picture, title);
    WriteWhole(path, text);
    std::cout << EscapeControl(Join(path, ": ", title, ", ", layers.size(), " layers")) << "\n";
    return 0;
  }
};

const RegisterVerb<Draw> kDrawVerb("draw");

}  // namespace
}  // namespace trainer
