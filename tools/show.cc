#include <iostream>

#include "device_flags.h"
#include "shared_flags.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

struct Row {
  const LayerSpec* layer = nullptr;
  std::vector<Tensor> outputs;  // shapes and types alone
  int64_t params = 0;           // those that the layer owns
  int64_t macs = 0;
  size_t bytes = 0;  // of its outputs, were each to have its own memory
};

std::vector<Row> RowsOf(const Net& net) {
  std::vector<Row> rows;
  for (int i = 0; i < net.NumLayers(); ++i) {
    Row row;
    row.layer = &net.LayerAt(i);
    row.macs = net.GetLayer(i).Macs();
    for (const std::string& top : row.layer->proto().top()) {
      const Tensor value = net.Value(top);
      row.outputs.push_back(value);
      row.bytes += static_cast<size_t>(value.shape.Count()) * SizeOf(value.dtype);
    }
    for (const Param* param : net.params()) {
      if (param->layer == row.layer->name()) row.params += param->count();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Row Total(const std::vector<Row>& rows) {
  Row total;
  for (const Row& row : rows) {
    total.params += row.params;
    total.macs += row.macs;
    total.bytes += row.bytes;
  }
  return total;
}

// "64x1x28x28", or "1" of a single number.
std::string Lengths(const Shape& shape) {
  std::vector<std::string> lengths;
  for (int axis = 0; axis < shape.Rank(); ++axis) lengths.push_back(Join(shape[axis]));
  return lengths.empty() ? "1" : JoinList(lengths, "x");
}

// An output goes without its name where that is the layer's, its input's, or made up for a Split.
std::string OutputsText(const Row& row) {
  const caffe::LayerParameter& layer = row.layer->proto();
  if (layer.type() == "Split") {
    return Join(row.outputs.size(), " of ", Lengths(row.outputs[0].shape));
  }
  std::vector<std::string> texts;
  for (int i = 0; i < layer.top_size(); ++i) {
    const Tensor& output = row.outputs[static_cast<size_t>(i)];
    const std::string& name = layer.top(i);
    const bool in_place = i < layer.bottom_size() && layer.bottom(i) == name;
    texts.push_back(Lengths(output.shape));
    if (name != layer.name() && !in_place) texts.back() = Join(name, " ", texts.back());
    if (output.dtype != DType::kF32) texts.back() += Join(" ", NameOf(output.dtype));
  }
  return EscapeControl(JoinList(texts));
}

std::string CountText(int64_t count) { return count == 0 ? "" : Join(count); }

void PrintTable(const Net& net, const std::vector<Row>& rows) {
  Table table({"layer", "type", "outputs", "parameters", "MFLOP", "memory"});
  table.InBytes({"memory"}).LeaveOut({"type", "memory"});
  auto add = [&](const std::string& name, const std::string& type, const std::string& outputs,
                 const Row& row) {
    table.Add({EscapeControl(name), type, outputs, CountText(row.params),
               row.macs == 0 ? "" : Fixed(2e-6 * static_cast<double>(row.macs), 2),
               row.bytes == 0 ? "" : Join(row.bytes)});
  };
  for (const Row& row : rows) add(row.layer->name(), row.layer->type(), OutputsText(row), row);
  add("together", "", "", Total(rows));
  std::cout << EscapeControl(net.name()) << ": " << rows.size() << " layers\n\n"
            << table.ToString() << "\nMFLOP: of one forward pass; a multiply-add counts as two.\n"
            << "Values share memory: all values and scratch together need "
            << Bytes(net.memory_plan().arena_bytes) << ".\n";
}

Json ShapeJson(const Shape& shape) {
  Json dims = Json::Array();
  for (int axis = 0; axis < shape.Rank(); ++axis) dims.Push(shape[axis]);
  return dims;
}

void PrintShowJson(const Net& net, const std::vector<Row>& rows) {
  Json layers = Json::Array();
  for (const Row& row : rows) {
    Json outputs = Json::Array();
    for (int i = 0; i < row.layer->proto().top_size(); ++i) {
      const Tensor& output = row.outputs[static_cast<size_t>(i)];
      outputs.Push(Json::Object()
                       .Set("name", row.layer->proto().top(i))
                       .Set("shape", ShapeJson(output.shape))
                       .Set("storage", NameOf(output.dtype)));
    }
    layers.Push(Json::Object()
                    .Set("name", row.layer->name())
                    .Set("type", row.layer->type())
                    .Set("outputs", std::move(outputs))
                    .Set("parameters", row.params)
                    .Set("flop", 2 * row.macs)
                    .Set("bytes", row.bytes));
  }
  const Row total = Total(rows);
  std::cout << Json::Object()
                   .Set("net", net.name())
                   .Set("layers", std::move(layers))
                   .Set("parameters", total.params)
                   .Set("flop", 2 * total.macs)
                   .Set("arena_bytes", net.memory_plan().arena_bytes)
                   .ToString();
}

class Show final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kLook,
        .summary = "show a net's layers with shapes, parameters, work and memory",
        .usage = "trainer show --model=FILE [--phase=TEST] [--json] [flags]",
        .text =
            "Prints one line per layer, including Split layers. A shared parameter counts only for "
            "the layer that owns it. The net's databases must exist; a deploy net needs none.",
        .examples =
            "trainer show --model=models/lenet/train_test.prototxt\n"
            "trainer show --model=deploy.prototxt --phase=TEST --json",
        .flags = {{.name = "model", .value = "FILE", .help = "the net", .required = true},
                  PhaseFlag(),
                  LevelFlag(),
                  StageFlag(),
                  SetFlag(),
                  JsonFlag()},
    };
  }

  int Run(const Flags& flags) override {
    const WarningsOnly warnings_only;
    const NetSpec spec = ModelOf(flags);
    const std::unique_ptr<Device> device = MakeDevice();
    ParamStore params(*device);
    NetOptions options;
    options.state = NetStateOf(flags, PhaseOf(flags));
    options.log = false;
    options.plan_only = true;
    const Net net(spec, options, *device, params);
    const std::vector<Row> rows = RowsOf(net);
    flags.Switch("json") ? PrintShowJson(net, rows) : PrintTable(net, rows);
    return 0;
  }
};

const RegisterVerb<Show> kShowVerb("show");

}  // namespace
}  // namespace trainer
