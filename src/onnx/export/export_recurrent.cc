// Exports LSTM, RNN and LSTMUnit. ONNX's own LSTM and RNN cannot restart a sequence where `cont` is
// 0, so the steps become a Scan unless `cont` is known.

#include <algorithm>
#include <utility>

#include "export/layer_export.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Holds the states after a step.
struct CellState {
  std::string h, c;  // an RNN has no c
};

// Returns the states after a step of an LSTM. `gates` holds the inputs of the gates i, f, o and g
// in this order along `axis`.
CellState AddLstmCell(GraphWriter& graph, const std::string& gates, const std::string& c,
                      const std::string& cont, int axis, int64_t width) {
  const GraphWriter::Names parts = graph.Split(gates, axis, {width, width, width, width});
  const std::string in = graph.Add("Sigmoid", {parts[0]}), keep = graph.Add("Sigmoid", {parts[1]});
  const std::string out = graph.Add("Sigmoid", {parts[2]}), value = graph.Add("Tanh", {parts[3]});
  const std::string kept = graph.Add("Mul", {graph.Add("Mul", {cont, keep}), c});
  const std::string next = graph.Add("Add", {kept, graph.Add("Mul", {in, value})});
  return {graph.Add("Mul", {out, graph.Add("Tanh", {next})}), next};
}

void AddFloatInfo(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* infos,
                  const std::string& name) {
  onnx::ValueInfoProto& info = *infos->Add();
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
}

// Returns the graph of one step. It reads the states, the gates' inputs from x, and cont, and it
// returns the new states and h once more. `weight` is W_h^T in the outer graph.
onnx::GraphProto MakeStep(const LayerExport& layer, bool is_lstm, const std::string& weight) {
  onnx::GraphProto step;
  step.set_name("step");
  const std::string scope = Join(layer.spec().name(), "/step");
  GraphWriter graph(&step, layer.graph().opset(), scope);
  const auto input = [&](const char* name) {
    const std::string value = graph.NewValue(Join(scope, "/", name));
    AddFloatInfo(step.mutable_input(), value);
    return value;
  };
  const std::string h = input("h"), c = is_lstm ? input("c") : "";
  const std::string gates_x = input("gates"), cont = input("cont");
  const std::string continued = graph.Add("Mul", {h, cont});
  const std::string gates = graph.Add("Add", {gates_x, graph.Add("MatMul", {continued, weight})});
  const int64_t width = layer.proto().recurrent_param().num_output();
  const CellState next = is_lstm ? AddLstmCell(graph, gates, c, cont, 1, width)
                                 : CellState{graph.Add("Tanh", {gates}), ""};
  AddFloatInfo(step.mutable_output(), next.h);
  if (is_lstm) AddFloatInfo(step.mutable_output(), next.c);
  AddFloatInfo(step.mutable_output(), graph.Add("Identity", {next.h}));
  return step;
}

// Returns x (.., K) multiplied by the transpose of parameter `index` (outputs, K).
std::string TimesParam(const LayerExport& layer, const std::string& x, int index,
                       std::string_view role) {
  const std::string weight = layer.graph().Transpose(layer.Param(index, role), {1, 0});
  return layer.graph().Add("MatMul", {x, weight});
}

// Returns what x and the static input contribute to the gates' inputs, for all steps.
std::string AddGateInputs(const LayerExport& layer, bool has_static) {
  GraphWriter& graph = layer.graph();
  const FreeShape& in = layer.InShape();
  std::string x = layer.In();
  if (in.Rank() > 3) x = layer.Reshape(x, in, in.Merged(2, in.Rank()));
  const std::string gates =
      graph.Add("Add", {TimesParam(layer, x, 0, "weight_x"), layer.Param(1, "bias")});
  if (!has_static) return gates;
  const FreeShape& fixed = layer.InShape(2);
  std::string s = layer.In(2);
  if (fixed.Rank() > 2) s = layer.Reshape(s, fixed, fixed.Merged(1, fixed.Rank()));
  return graph.Add("Add", {gates, TimesParam(layer, s, 2, "weight_static")});
}

// Returns a state of zeros (N, H).
std::string AddZeroState(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const int64_t width = layer.proto().recurrent_param().num_output();
  const std::string shape =
      graph.Add("Concat", {layer.Length(layer.In(1), layer.InShape(1), 1), graph.Ints({width})},
                {{"axis", 0}});
  return graph.Add("Expand", {graph.Float(0), shape});
}

// For an RNN, returns the squashed W_ho h + b_o, where `first` is the index of W_ho. For an LSTM,
// returns h itself.
std::string AddOutput(const LayerExport& layer, const std::string& h, int first) {
  if (layer.spec().type() == "LSTM") return h;
  const std::string sums = TimesParam(layer, h, first, "weight_o");
  const std::string biased = layer.graph().Add("Add", {sums, layer.Param(first + 1, "bias_o")});
  return layer.graph().Add("Tanh", {biased});
}

// Reorders the rows of the gates from (i, f, o, g) to (i, o, f, g), which ONNX's LSTM expects, and
// prepends an axis of length 1.
FloatArray InOnnxOrder(const FloatArray& gates, bool is_lstm) {
  FloatArray ordered = gates;
  ordered.dims.insert(ordered.dims.begin(), 1);
  if (!is_lstm) return ordered;
  const auto part = static_cast<std::ptrdiff_t>(gates.values.size() / 4);
  std::rotate(ordered.values.begin() + part, ordered.values.begin() + 2 * part,
              ordered.values.begin() + 3 * part);
  return ordered;
}

// Returns whether `cont` is known and keeps the state in each step but the first.
bool IsOneSequence(const LayerExport& layer) {
  const std::optional<FloatArray> cont = layer.ConstantIn(1);
  if (!cont) return false;
  const auto second = cont->values.begin() + cont->dims[1];
  return std::all_of(second, cont->values.end(), [](float factor) { return factor == 1; });
}

// Writes ONNX's LSTM or RNN. The layer must not read or return states.
void AddOnnxRecurrent(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const bool is_lstm = layer.spec().type() == "LSTM";
  const int64_t width = layer.proto().recurrent_param().num_output();
  FloatArray bias = InOnnxOrder(layer.ReadParam(1), is_lstm);
  bias.dims[1] *= 2;  // ONNX adds the second half, here zeros, to the product with h
  bias.values.resize(bias.values.size() * 2, 0.0f);
  const FreeShape& in = layer.InShape();
  std::string x = layer.In();
  if (in.Rank() > 3) x = layer.Reshape(x, in, in.Merged(2, in.Rank()));
  const std::string y =
      graph.Add(is_lstm ? "LSTM" : "RNN",
                {x, layer.Constant(InOnnxOrder(layer.ReadParam(0), is_lstm), "weight_x"),
                 layer.Constant(InOnnxOrder(layer.ReadParam(2), is_lstm), "weight_h"),
                 layer.Constant(bias, "bias")},
                {{"hidden_size", width}});
  layer.Set(0, AddOutput(layer, graph.Squeeze(y, {1}), 3));
}

void ExportRecurrent(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const bool is_lstm = layer.spec().type() == "LSTM";
  const bool exposed = layer.proto().recurrent_param().expose_hidden();
  const int states = is_lstm ? 2 : 1;
  const int first_state = layer.NumInputs() - (exposed ? states : 0);
  const bool has_static = first_state == 3;
  if (!exposed && !has_static && IsOneSequence(layer)) return AddOnnxRecurrent(layer);
  const std::string zeros = exposed ? "" : AddZeroState(layer);
  GraphWriter::Names inputs;
  for (int s = 0; s < states; ++s) {
    inputs.push_back(exposed ? graph.Squeeze(layer.In(first_state + s), {0}) : zeros);
  }
  inputs.push_back(AddGateInputs(layer, has_static));
  inputs.push_back(graph.Unsqueeze(layer.In(1), {2}));
  const int hidden = has_static ? 3 : 2;
  const std::string weight = graph.Transpose(layer.Param(hidden, "weight_h"), {1, 0});
  const GraphWriter::Names all =
      graph.AddMany("Scan", inputs, static_cast<size_t>(states) + 1,
                    {{"body", MakeStep(layer, is_lstm, weight)}, {"num_scan_inputs", 2}});
  layer.Set(0, AddOutput(layer, all.back(), hidden + 1));
  for (int s = 0; exposed && s < states; ++s) {
    layer.Set(1 + s, graph.Unsqueeze(all[static_cast<size_t>(s)], {0}));
  }
}

void ExportLstmUnit(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const std::string cont = graph.Unsqueeze(layer.In(2), {2});
  const CellState next = AddLstmCell(graph, layer.In(1), layer.In(0), cont, 2, layer.InShape()[2]);
  layer.Set(0, next.c);
  layer.Set(1, next.h);
}

const RegisterExport kExportRecurrent({"LSTM", "RNN"}, {ExportRecurrent});
const RegisterExport kExportLstmUnit({"LSTMUnit"}, {ExportLstmUnit});

}  // namespace
}  // namespace trainer
