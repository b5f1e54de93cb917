#include "trainer/inference/predict/prediction_target.h"

#include <algorithm>
#include <utility>

#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/overrides.h"
#include "trainer/config/solver_spec.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/run_weights.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

constexpr int kBatchOfRun = 32;

// Returns the field of the layer that names its data, or null. Checks data_param last, because
// --limit sets data_param.limit in layers of other types too.
std::string* SourceOf(caffe::LayerParameter* layer) {
  if (layer->has_image_data_param()) return layer->mutable_image_data_param()->mutable_source();
  if (layer->has_hdf5_data_param()) return layer->mutable_hdf5_data_param()->mutable_source();
  if (layer->has_data_param()) return layer->mutable_data_param()->mutable_source();
  return nullptr;
}

// Replaces the recorded paths of the data and of the mean by paths that exist here. Returns the
// file with the class names, or "".
std::string ResolvePaths(const std::string& run, NetSpec* net) {
  std::string names;
  for (LayerSpec& layer : net->layers) {
    caffe::LayerParameter& proto = layer.mutable_proto();
    if (proto.transform_param().has_mean_file()) {
      proto.mutable_transform_param()->set_mean_file(
          ResolveRunPath(run, proto.transform_param().mean_file()));
    }
    std::string* const source = SourceOf(&proto);
    if (source == nullptr) continue;
    *source = ResolveRunPath(run, *source);
    const bool is_folder =
        layer.type() == "ImageData" && IsDirectory(*source);  // a subfolder per class
    if (names.empty()) names = is_folder ? *source : FindLabels(*source);
  }
  return names;
}

// Sets the first axis of the inputs.
void SetBatch(int batch, NetSpec* net) {
  for (LayerSpec& layer : net->layers) {
    if (layer.type() != "Input") continue;
    for (caffe::BlobShape& shape : *layer.mutable_proto().mutable_input_param()->mutable_shape()) {
      if (shape.dim_size() > 0) shape.set_dim(0, batch);
    }
  }
}

PredictionTarget PredictionTargetOfRun(const PredictionTargetOptions& options) {
  if (!options.model.file.empty()) {
    throw Error(ErrorCode::kUsage,
                "--run and --model cannot both be given: both name a net; leave one of them out");
  }
  PredictionTarget target;
  target.weights = options.weights;
  UsePack(nullptr, &target.weights);
  if (target.weights.empty()) target.weights = {ChooseRunWeights(options.run, "Using")};
  RequireFiles(target.weights);
  Overrides overrides(options.model.set);
  SolverSpec solver =
      LoadSolver(JoinPath(options.run, kSolverName), options.model.state, &overrides);
  for (NetSpec& net : solver.nets) {
    const std::string names = ResolvePaths(options.run, &net);
    if (target.class_names.empty()) target.class_names = names;
  }
  ExportOptions exporting;
  exporting.batch = options.batch.value_or(kBatchOfRun);
  exporting.shape = options.shape;
  const NetUse& use = solver.tests.empty() ? solver.train : solver.tests[0];
  target.state = use.state;
  target.state.set_phase(caffe::TEST);
  exporting.spec.state = target.state;
  const std::string text = ToText(ExportNet(*use.net, *MakeCpuDevice(), exporting));
  target.net = LoadNetText(Join("the net of ", options.run), text);
  return target;
}

// Throws kConfig if the net reads its own data, as nets for training do.
void RequireInput(const NetSpec& net) {
  const auto is_input = [](const LayerSpec& layer) { return layer.type() == "Input"; };
  const auto is_data = [](const LayerSpec& layer) {
    return layer.proto().bottom_size() == 0 && layer.type().ends_with("Data") &&
           layer.type() != "DummyData";
  };
  if (std::ranges::any_of(net.layers, is_input) || std::ranges::none_of(net.layers, is_data))
    return;
  throw Error(ErrorCode::kConfig, {net.file},
              EscapeControl(Join("this net reads its own data, as for training; make a net with an "
                                 "Input layer from it: trainer deploy --model=",
                                 net.file, " --out=deploy.prototxt")));
}

PredictionTarget PredictionTargetOfFiles(const PredictionTargetOptions& options) {
  PredictionTarget target;
  NetSource model = options.model;
  target.weights = options.weights;
  UsePack(&model, &target.weights, &target.class_names);
  RefuseOnnx(model.file);
  for (const auto& [flag, is_given] :
       {std::pair("model", !model.file.empty()), std::pair("weights", !target.weights.empty())}) {
    if (is_given) continue;
    throw Error(ErrorCode::kUsage, Join("'trainer ", options.verb, "' needs --", flag,
                                        "=FILE, or --run=DIR for the net and the best weights of "
                                        "a run"));
  }
  if (options.shape) {
    throw Error(ErrorCode::kUsage,
                "--shape is for --run=DIR; the net of --model has the shape of its input");
  }
  RequireFiles(target.weights);
  target.net = LoadNet(model);
  RequireInput(target.net);
  target.state = MakeNetState(caffe::TEST, options.model.state);
  if (options.batch) SetBatch(*options.batch, &target.net);
  return target;
}

}  // namespace

PredictionTarget ResolvePredictionTarget(const PredictionTargetOptions& options) {
  return options.run.empty() ? PredictionTargetOfFiles(options) : PredictionTargetOfRun(options);
}

}  // namespace trainer
