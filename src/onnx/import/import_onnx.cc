#include "trainer/onnx/import_onnx.h"

#include "import/fuse.h"
#include "import/importers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

const NodeImporters& AllImporters() {
  static const NodeImporters importers = [] {
    NodeImporters all;
    AddConvImporters(&all);
    AddPoolImporters(&all);
    AddMatrixImporters(&all);
    AddActivationImporters(&all);
    AddArithmeticImporters(&all);
    AddNormImporters(&all);
    AddShapeImporters(&all);
    AddSelectImporters(&all);
    AddResizeImporters(&all);
    AddReduceImporters(&all);
    AddRecurrentImporters(&all);
    return all;
  }();
  return importers;
}

}  // namespace

ImportedNet ImportOnnx(const onnx::ModelProto& model, const std::string& path,
                       const OnnxImportOptions& options) {
  ImportGraph graph(model, path, options);
  FuseNodes(graph);
  NetBuilder net(graph);
  for (const ImportNode& node : graph.nodes()) {
    const auto found = AllImporters().find(node.op);
    if (found == AllImporters().end()) {
      graph.Refuse(node,
                   "no layer of a net computes this operator, so the model cannot be "
                   "imported; docs/models.md lists the operators that can be");
    }
    found->second(net, node);
  }
  ImportedNet imported = net.Finish();
  imported.net.set_name(EscapeControl(model.graph().name()));
  imported.weights.set_name(imported.net.name());
  return imported;
}

}  // namespace trainer
