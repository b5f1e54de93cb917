#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "export/affine_folding.h"
#include "export/free_axes.h"
#include "export/graph_writer.h"
#include "export/layer_export.h"
#include "trainer/net/net.h"
#include "trainer/onnx/export_onnx.h"

namespace trainer {

// Writes the nodes of a net into a graph. Use an object once, in one thread.
class NetExport {
 public:
  // `net` was compiled from `spec`, has its weights and keeps every value after a pass
  // (BufferReuse::kSeparate). All arguments must outlive this object.
  NetExport(const NetSpec& spec, Net& net, const OnnxExportOptions& options,
            onnx::GraphProto* graph);

  // Writes inputs, layers and outputs. Throws kUsage for an output that does not exist, and kConfig
  // at the line of a layer that cannot be exported.
  void Write();

  // Returns what a user should know about the graph, after Write.
  std::vector<std::string> Notes() const;

 private:
  friend class LayerExport;

  void FindOutputs();
  void MarkConstants();
  void FindNeeded();
  void ComputeConstants();
  void WriteInputs();
  std::string WritePreprocessing(const std::string& input, const Value& value);
  void WriteLayer(NodeId node);
  void WriteOutputs();
  void DeclareValue(const std::string& name, ValueId id, onnx::ValueInfoProto* info) const;
  const std::string& NameOf(ValueId id);
  std::string TargetName(ValueId id) const;
  bool IsNeeded(NodeId node) const { return needed_.contains(node); }
  FloatArray ReadConstant(ValueId id) const;

  const NetSpec& spec_;
  Net& net_;
  const Graph& in_;
  const OnnxExportOptions& options_;
  onnx::GraphProto* graph_;
  GraphWriter writer_;
  FreeAxes axes_;
  AffineFolding folding_;
  std::vector<std::pair<std::string, ValueId>> outputs_;  // blob and value
  std::set<NodeId> needed_;
  std::set<ValueId> constants_;
  std::map<ValueId, std::string> names_;
  std::map<const struct Param*, std::string> params_;  // names of constants
  int folded_layers_ = 0, stateful_layers_ = 0;
};

}  // namespace trainer
