#include "onnx_flags.h"

#include <glog/logging.h>

#include <memory>
#include <optional>
#include <vector>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/onnx/model_properties.h"
#include "trainer/onnx/read_back.h"
#include "trainer/onnx/write_onnx.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

constexpr char kOnnxGroup[] = "ONNX";

// Applies --batch and --shape. The net of a run gets one item per pass unless --batch is a number.
void ReadSizes(OnnxFlags* flags, PredictionTargetOptions* target) {
  if (!flags->shape.empty()) target->shape = ParseItemShape(flags->shape);
  flags->options.fixed_batch = flags->batch != "free";
  if (!target->run.empty()) target->batch = 1;
  if (flags->batch == "free" || flags->batch == "fixed") return;
  const std::optional<int> batch = ParseNumber<int>(flags->batch);
  if (!batch || *batch < 1) {
    throw Error(ErrorCode::kUsage,
                Join("--batch=", flags->batch, ": give free, fixed, or a number of items"));
  }
  target->batch = *batch;
}

// Returns the names in --labels, or else the names in the run's data.
std::vector<std::string> ReadLabels(const OnnxFlags& flags, const PredictionTarget& target,
                                    int64_t classes) {
  if (flags.labels.empty()) {
    return ReadClassNamesOfRun(classes > 0 ? target.class_names : "", classes);
  }
  if (classes == 0) {
    throw Error(
        ErrorCode::kUsage,
        "--labels is for a net whose only output is one score per class, or detections; leave "
        "it out, or choose the output with --output");
  }
  return ReadClassNames(flags.labels, classes);
}

}  // namespace

void DeclareOnnx(FlagSet& flags, OnnxFlags* onnx, NetSource* net) {
  flags.BeginGroup(kOnnxGroup);
  flags.Bind(&onnx->options.opset, "opset", "N", "version of the operators")
      .Range(OnnxExportOptions::kMinOpset, OnnxExportOptions::kMaxOpset);
  flags.Bind(&onnx->batch, "batch", "free|fixed|N",
             "how many items a call has: any number, as many as the net, or N");
  flags.BindList(&onnx->options.outputs, "output", "BLOBS",
                 "blobs that the file outputs; default: the outputs of the net");
  flags.Bind(&onnx->labels, "labels", "FILE",
             "the names of the classes, one per line, which the file then contains");
  flags
      .Bind(&onnx->preprocess, "preprocess", "rgb|bgr",
            "begin with mean and scale: the input is then pixels from 0 to 255, with this order of "
            "colours")
      .Choices("rgb|bgr")
      .IfBare("rgb");
  flags.Bind(&onnx->shape, "shape", "C,H,W",
             "for --run, if the data of the run is not there: the shape of an image");
  DeclarePreprocessing(flags, &onnx->images);
  DeclareNetChanges(flags, net);
  flags.BeginGroup("");
}

void RefuseOnnxFlags(const FlagSet& flags, const std::string& out) {
  std::vector<std::string> given;
  for (const Flag& flag : flags.flags()) {
    if (flag.group != kOnnxGroup || !flags.values().IsGiven(flag.name)) continue;
    given.push_back(Join("--", flag.name));
  }
  if (given.empty()) return;
  throw Error(ErrorCode::kUsage,
              EscapeControl(Join("--out=", out, ": a file of weights takes no ", JoinList(given),
                                 "; leave it out, or write the net as FILE.onnx")));
}

void ExportOnnxFile(OnnxFlags flags, PredictionTargetOptions options, const std::string& out) {
  options.verb = "export";
  ReadSizes(&flags, &options);
  const PredictionTarget target = ResolvePredictionTarget(options);
  const std::unique_ptr<Device> device = MakeDevice();
  InferenceNet net(target.net, *device, {.state = target.state, .memory = BufferReuse::kSeparate});
  const ImagePreparation images =
      ResolveImagePreparation(net.net(), target.net, flags.images, flags.preprocess);
  if (!flags.preprocess.empty()) flags.options.preprocessing = images.preprocessing;
  net.LoadAllWeights(target.weights);
  OnnxExport exported = ExportOnnx(target.net, net.net(), flags.options);
  const int64_t classes = CountClasses(net.net(), exported.model.graph());
  const std::vector<std::string> labels = ReadLabels(flags, target, classes);
  AddModelProperties(net.net(), {labels, images, !flags.preprocess.empty()}, &exported.model);
  const std::string nodes = Counted(exported.model.graph().node_size(), "node");
  const std::vector<std::string> files = WriteOnnx(&exported.model, out);
  LOG(INFO) << EscapeControl(
      Join("Wrote ", JoinList(files), ": ", nodes, ", opset ", flags.options.opset));
  for (const std::string& note : exported.notes) LOG(INFO) << EscapeControl(note);
  const std::string comparison = ToText(CompareWithModel(out, net.net(), flags.options));
  LOG(INFO) << EscapeControl(comparison);
}

}  // namespace trainer
