#include "check_pass.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "trainer/base/text/text.h"
#include "trainer/net/debug_info.h"
#include "trainer/net/learning.h"

namespace trainer {
namespace {

// Returns whether all numbers of a device's blob are finite. Copies them to the host in chunks, so
// that a large blob needs little memory there.
bool IsFinite(const Device& device, const ConstTensor& value) {
  constexpr size_t kChunk = size_t{1} << 16;
  const auto count = static_cast<size_t>(value.Count());
  std::vector<std::byte> host(kChunk * SizeOf(value.dtype));
  bool finite = true;
  DispatchDtype(value.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* numbers = reinterpret_cast<const T*>(host.data());
    for (size_t at = 0; at < count && finite; at += kChunk) {
      const size_t chunk = std::min(kChunk, count - at);
      device.CopyToHost(host.data(), value.As<T>() + at, chunk * sizeof(T));
      for (size_t i = 0; i < chunk; ++i) finite = finite && std::isfinite(Load(numbers[i]));
    }
  });
  return finite;
}

bool IsZero(const Device& device, const float* values, size_t count) {
  std::vector<float> host(count);
  device.CopyToHost(host.data(), values, count * sizeof(float));
  return std::ranges::all_of(host, [](float value) { return value == 0; });
}

// Returns "layer 'conv1' (Convolution)" for messages.
std::string NameOf(const LayerSpec& layer) {
  return Join("layer '", layer.name(), "' (", layer.type(), ")");
}

// Runs a forward pass. Returns its loss, and the first layer whose output is not finite.
std::pair<float, std::optional<int>> RunForward(Net& net) {
  std::optional<int> broken;
  const NodeHook check = [&](const Net&, NodeId id, Direction, const std::function<void()>& run) {
    run();
    const Node& node = net.graph().nodes[id];
    if (node.fused_into) return;  // another layer computes its output
    const auto is_finite = [&](ValueId out) { return IsFinite(net.device(), net.Value(out)); };
    if (!broken && !std::ranges::all_of(node.out, is_finite)) broken = id.number;
  };
  net.AddHook(&check);
  const float loss = net.Forward();
  net.RemoveHook(&check);
  return {loss, broken};
}

// Warns if the first loss of a SoftmaxWithLoss layer exceeds 2 ln(classes) + 1; guessing would give
// ln(classes). Skips layers with class weights, because those change the scale of the loss.
void WarnOfHighLoss(Net& net, Diagnostics* diagnostics) {
  for (const LabelConsumer& use : FindLabelConsumers(net.graph())) {
    const Node& node = net.graph().nodes[NodeId(use.layer)];
    const LayerSpec& layer = node.spec;
    if (layer.type() != "SoftmaxWithLoss" || layer.proto().loss_param().class_weight_size() > 0) {
      continue;
    }
    float loss = 0;
    net.ReadNchw(net.Value(node.out[0]), {&loss, 1});
    const double guess = std::log(static_cast<double>(use.classes));
    if (loss <= 2 * guess + 1) continue;
    diagnostics->Warn(Join(
        layer.Where().ToString(), ": ", NameOf(layer), ": the loss is ", loss,
        ", and guessing among ", use.classes, " classes would give ", static_cast<float>(guess),
        ", so the scores are very large; check the scale of the data and the weight fillers"));
  }
}

// Adds an error for each gradient that is not finite. If the fillers set the weights (`fresh`),
// also warns of each first parameter of a layer whose gradient is zero, because it does not learn.
void CheckGradients(Net& net, const Device& device, bool fresh, Diagnostics* diagnostics) {
  for (const Param* param : net.params()) {
    if (param->grad == nullptr || param->final_grad_node >= net.graph().nodes.size()) continue;
    const auto count = static_cast<size_t>(param->count());
    const std::string name = Join("layer '", param->layer, "' (parameter ", param->index, ")");
    if (!IsFinite(device, {param->grad, param->shape})) {
      diagnostics->Add(
          Error(ErrorCode::kDiverged, param->where,
                Join("the gradient of ", name,
                     " is not finite (NaN or infinity) after the first pass; check the "
                     "scale of the data")));
    } else if (fresh && param->index == 0 && count > 1 && IsZero(device, param->grad, count)) {
      diagnostics->Warn(
          Join(param->where.ToString(), ": the gradient of ", name,
               " is zero in the first pass, so it does not learn; if the weights of the layer "
               "after it start at zero, give that layer a weight_filler, such as xavier or msra"));
    }
  }
}

// Reports a loss that is not finite: as an error of a training net, where it ends the run, and as a
// warning of a test net. With `fresh` weights it is common in a test, because a batch norm has no
// statistics yet, so it is reported only if the run tests before training.
void ReportLoss(const PreflightNet& checked, const Net& net, float loss, std::optional<int> broken,
                bool fresh, Diagnostics* diagnostics) {
  const LayerSpec* const layer = broken ? &net.graph().nodes[NodeId(*broken)].spec : nullptr;
  const SourceRef place = layer != nullptr ? layer->Where() : SourceRef{checked.spec->file};
  const std::string what =
      Join("the loss of the ", checked.title, " is ", loss, " in the first pass",
           layer != nullptr
               ? Join("; the first layer with an output that is not finite is ", NameOf(*layer))
               : std::string());
  if (checked.options.training) {
    diagnostics->Add(
        Error(ErrorCode::kDiverged, place,
              what + ". Check the scale of the data, the weights and the weight fillers"));
  } else if (!fresh || checked.tests_at_start) {
    diagnostics->Warn(Join(place.ToString(), ": ", what,
                           fresh ? ". The test before training will show the same; training may "
                                   "correct it (test_initialization: false skips that test)"
                                 : ". Check the scale of the data and the weights"));
  }
}

}  // namespace

void RunFirstPass(const PreflightNet& checked, Net& net, const Device& device, bool fresh,
                  PreflightReport* report, Json* passes) {
  net.RemoveHook(DebugInfoHook());
  const auto [loss, broken] = RunForward(net);
  std::vector<std::string> texts;
  Json outputs = Json::Object();
  std::vector<float> host;
  for (const NetOutput& output : net.outputs()) {
    host.resize(static_cast<size_t>(output.value.Count()));
    net.ReadNchw(output.value, host);
    if (host.size() != 1) continue;
    texts.push_back(Join(EscapeControl(output.name), " = ", host[0]));
    outputs.Set(output.name, host[0]);
  }
  if (texts.empty()) texts.push_back(Join("loss = ", loss));
  const size_t unset = fresh ? LayersWithoutAverages(net).size() : 0;
  report->lines.emplace_back(
      "first pass",
      Join(checked.title, ": ", JoinList(texts),
           unset == 0 ? ""
                      : Join(" (not meaningful yet: ", unset, " BatchNorm ",
                             unset == 1 ? "layer has" : "layers have", " no moving averages)")));
  passes->Set(checked.title, Json::Object().Set("loss", loss).Set("outputs", std::move(outputs)));
  if (!std::isfinite(loss)) {
    ReportLoss(checked, net, loss, broken, fresh, &report->diagnostics);
    return;
  }
  if (!checked.options.training) return;
  if (fresh) WarnOfHighLoss(net, &report->diagnostics);
  net.Backward();
  CheckGradients(net, device, fresh, &report->diagnostics);
}

}  // namespace trainer
