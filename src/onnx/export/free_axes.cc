#include "export/free_axes.h"

#include <algorithm>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"

namespace trainer {
namespace {

// Says by which factor each kind of axis grows. The two factors differ, so that a grown length
// shows which factor caused it. In a net with recurrent layers, a batch has `items` sequences with
// `steps` steps each.
struct Growth {
  int64_t items = 1, steps = 0;  // lengths in the net; steps is 0 in a net without sequences
  int64_t more_items = 3, more_steps = 1;  // factors
};

bool HasType(const Graph& graph, const std::set<std::string>& types) {
  return std::ranges::any_of(graph.nodes,
                             [&](const Node& node) { return types.contains(node.spec.type()); });
}

// Grows the axes of an input that count items and steps. Without sequences, axis 0 counts items.
// With sequences, an input has the shape (steps, items, ...), a state (1, items, size), or (items,
// ...).
void GrowInput(const Growth& growth, caffe::BlobShape* shape) {
  if (shape->dim_size() == 0) return;
  const bool has_second = shape->dim_size() > 1 && shape->dim(1) == growth.items;
  if (growth.steps == 0) {
    shape->set_dim(0, shape->dim(0) * growth.more_items);
  } else if (has_second && shape->dim(0) == growth.steps) {
    shape->set_dim(0, shape->dim(0) * growth.more_steps);
    shape->set_dim(1, shape->dim(1) * growth.more_items);
  } else if (has_second && shape->dim(0) == 1 && shape->dim_size() == 3) {
    shape->set_dim(1, shape->dim(1) * growth.more_items);
  } else if (shape->dim(0) == growth.items) {
    shape->set_dim(0, shape->dim(0) * growth.more_items);
  }
}

NetSpec WithLongerInputs(const NetSpec& spec, const Growth& growth) {
  NetSpec longer;
  longer.proto = spec.proto;
  longer.layers = spec.layers;
  longer.file = spec.file;
  longer.tree = spec.tree;
  for (LayerSpec& layer : longer.layers) {
    if (layer.type() != "Input") continue;
    for (caffe::BlobShape& shape : *layer.mutable_proto().mutable_input_param()->mutable_shape()) {
      GrowInput(growth, &shape);
    }
  }
  return longer;
}

// Names the axes of a value that grew. If the inputs of the net have different numbers of items,
// only the axes of the inputs get names, because a name must mean one length.
void NameAxes(const Graph& graph, const Value& value, const Shape& longer, const Growth& growth,
              bool same_items, std::vector<std::string>* names) {
  const bool is_input = graph.nodes[value.producer].spec.type() == "Input";
  for (int axis = 0; axis < value.shape.Rank(); ++axis) {
    std::string& name = (*names)[static_cast<size_t>(axis)];
    const int64_t length = value.shape[axis];
    if (longer[axis] == length) continue;
    if (!same_items) {
      if (is_input && axis == 0) name = value.name + "_batch";
    } else if (length == growth.items && longer[axis] == length * growth.more_items) {
      name = "batch";
    } else if (length == growth.steps && longer[axis] == length * growth.more_steps) {
      name = "time";
    }
  }
}

// Returns whether all inputs have the same first length, and every layer combines item i of one
// input only with item i of the others.
bool HasSameItems(const Graph& graph) {
  if (HasType(graph, {"ROIPooling", "PSROIPooling", "BatchReindex", "Filter"})) return false;
  std::set<int64_t> lengths;
  for (const Value& value : graph.values) {
    if (graph.nodes[value.producer].spec.type() == "Input" && value.shape.Rank() > 0) {
      lengths.insert(value.shape[0]);
    }
  }
  return lengths.size() <= 1;
}

// Marks the axes whose lengths differ between the two nets as free.
void CompareShapes(const Graph& graph, const Graph& longer, const Growth& growth, FreeAxes* axes) {
  const bool same_items = growth.steps > 0 || HasSameItems(graph);
  for (const ValueId id : graph.values.Ids()) {
    const Value& value = graph.values[id];
    const Shape& other = longer.values[id].shape;
    FreeShape& shape = axes->shapes[id];
    for (int axis = 0; axis < value.shape.Rank(); ++axis) {
      shape.free[static_cast<size_t>(axis)] = value.shape[axis] != other[axis];
    }
    NameAxes(graph, value, other, growth, same_items, &axes->names[id]);
  }
}

bool HaveSameValues(const Graph& a, const Graph& b) {
  if (a.values.size() != b.values.size() || a.nodes.size() != b.nodes.size()) return false;
  return std::ranges::all_of(a.values.Ids(), [&](ValueId id) {
    return a.values[id].name == b.values[id].name &&
           a.values[id].shape.Rank() == b.values[id].shape.Rank();
  });
}

// Returns the name of a layer whose parameters have other shapes in `longer`, or "" if no layer
// differs.
std::string FindOtherParams(const Graph& graph, const Graph& longer) {
  for (const NodeId id : graph.nodes.Ids()) {
    const auto have_same_shape = [](const Param* a, const Param* b) {
      return a->shape == b->shape;
    };
    if (!std::ranges::equal(graph.nodes[id].params, longer.nodes[id].params, have_same_shape)) {
      return graph.nodes[id].spec.name();
    }
  }
  return "";
}

// Compiles the longer net and compares the shapes. Returns "", or the reason if it cannot be
// compared.
std::string CompareWithLonger(const NetSpec& spec, const Net& net, const Growth& growth,
                              FreeAxes* axes) try {
  const WarningsOnly warnings_only;
  const NetSpec longer = WithLongerInputs(spec, growth);
  NetOptions options = net.graph().options;
  options.log = false;
  ParamStore params(net.device());
  const std::unique_ptr<const Graph> graph =
      Compile(longer, options, net.device(), params, SizeLimit::kNone);
  if (!HaveSameValues(net.graph(), *graph)) return "other layers run for another batch size";
  const std::string other = FindOtherParams(net.graph(), *graph);
  if (!other.empty()) return Join("the shapes of the weights of layer '", other, "' depend on it");
  CompareShapes(net.graph(), *graph, growth, axes);
  return "";
} catch (const Error& error) {
  return error.what();
}

// Reads the lengths of the inputs from the net.
Growth ReadGrowth(const Graph& graph) {
  Growth growth;
  for (const Node& node : graph.nodes) {
    if (node.spec.type() == "LSTM" || node.spec.type() == "RNN") {
      const Shape& x = graph.values[node.in[0]].shape;
      return {.items = x[1], .steps = x[0]};
    }
    if (node.spec.type() != "Input" || node.out.empty()) continue;
    const Shape& shape = graph.values[node.out[0]].shape;
    if (shape.Rank() > 0 && growth.items == 1) growth.items = shape[0];
  }
  return growth;
}

// Tries to make the number of items free. In a net with sequences, it first tries to make the
// number of steps free as well.
std::string FindFree(const NetSpec& spec, const Net& net, FreeAxes* axes) {
  Growth growth = ReadGrowth(net.graph());
  if (growth.steps > 0) {
    growth.more_steps = 2;
    if (CompareWithLonger(spec, net, growth, axes).empty()) return "";
    growth.more_steps = 1;
  }
  return CompareWithLonger(spec, net, growth, axes);
}

}  // namespace

FreeAxes FindFreeAxes(const NetSpec& spec, const Net& net, bool fixed) {
  const Graph& graph = net.graph();
  FreeAxes axes;
  for (const Value& value : graph.values) {
    FreeShape shape;
    shape.dims.assign(value.shape.dims().begin(), value.shape.dims().end());
    shape.free.assign(shape.dims.size(), false);
    axes.names.Add(std::vector<std::string>(shape.dims.size()));
    axes.shapes.Add(std::move(shape));
  }
  axes.why_fixed = fixed ? "--batch says so" : FindFree(spec, net, &axes);
  for (const ValueId id : graph.values.Ids()) {
    const Value& value = graph.values[id];
    if (!value.is_dynamic || value.shape.Rank() == 0) continue;
    const bool has_rows = graph.nodes[value.producer].spec.type() == "DetectionOutput";
    axes.shapes[id].free[has_rows ? 2 : 0] = true;
    axes.names[id][has_rows ? 2 : 0].clear();
  }
  return axes;
}

}  // namespace trainer
