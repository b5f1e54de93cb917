#include "trainer/onnx/export_onnx.h"

#include "export/net_export.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/program_info.h"
#include "trainer/base/text/text.h"

namespace trainer {

OnnxExport ExportOnnx(const NetSpec& spec, Net& net, const OnnxExportOptions& options) {
  if (options.opset < OnnxExportOptions::kMinOpset ||
      options.opset > OnnxExportOptions::kMaxOpset) {
    throw Error(ErrorCode::kUsage,
                Join("--opset=", options.opset, ": it must be ", OnnxExportOptions::kMinOpset,
                     " to ", OnnxExportOptions::kMaxOpset));
  }
  OnnxExport result;
  onnx::ModelProto& model = result.model;
  // Opset 13 needs version 7 of the format, and opset 15 needs version 8.
  model.set_ir_version(options.opset < 15 ? 7 : 8);
  model.set_producer_name("trainer");
  model.set_producer_version(std::string(ProgramVersion()));
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(options.opset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(net.graph().name.empty() ? "net" : net.graph().name);
  NetExport writing(spec, net, options, &graph);
  writing.Write();
  result.notes = writing.Notes();
  return result;
}

}  // namespace trainer
