#include "trainer/run/model_import/import_model.h"

#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/export_weights.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/checkpoint/tensor_model.h"
#include "trainer/config/net_state.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/net/compile.h"
#include "trainer/onnx/model_properties.h"
#include "trainer/onnx/onnx_file.h"
#include "trainer/run/device.h"
#include "trainer/run/new_project/new_project.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

constexpr char kNetEnding[] = ".prototxt";

// Returns the name of the net's file without its ending.
std::string StemOf(const std::string& out) {
  return out.substr(0, out.size() - sizeof(kNetEnding) + 1);
}

// Returns the name of a file next to the net: "net_solver.prototxt" for "net.prototxt".
std::string NameBeside(const std::string& out, const std::string& kind) {
  return Join(StemOf(out), "_", kind, kNetEnding);
}

std::string WithComment(const std::string& comment, const caffe::NetParameter& net) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(net, &text);
  return Join("# ", EscapeControl(comment), "\n", text);
}

// Throws kUsage for flags that do not fit each other.
void CheckImportOptions(const ImportModelOptions& options) {
  if (!options.out.ends_with(kNetEnding)) {
    throw Error(ErrorCode::kUsage,
                EscapeControl(Join("--out=", options.out, ": the name must end in .prototxt")));
  }
  if (!IsNamedAsWeights(options.weights)) {
    throw Error(
        ErrorCode::kUsage,
        EscapeControl(Join("--weights=", options.weights,
                           ": the name must end in .caffemodel, .safetensors, .npz or .h5")));
  }
  if (options.out.find_first_of("\"\\") != std::string::npos) {
    throw Error(ErrorCode::kUsage, EscapeControl(Join("--out=", options.out,
                                                      ": the name must not contain a quotation "
                                                      "mark or a backslash")));
  }
  if (options.weights.find(',') != std::string::npos) {
    throw Error(ErrorCode::kUsage,
                EscapeControl(Join("--weights=", options.weights,
                                   ": the name must not contain a comma, which separates files")));
  }
  const FineTuneOptions& tune = options.tune;
  const bool has_training = tune.classes > 0 || !tune.source.empty() || !tune.test_source.empty();
  if (!options.train && has_training) {
    throw Error(ErrorCode::kUsage,
                "--classes, --source and --test_source are for --train; give --train, too");
  }
  if (options.train && tune.source.empty()) {
    throw Error(ErrorCode::kUsage, "--train needs --source=SET, the training set");
  }
}

// Returns `classes`, or for 0 the number of names in the labels.txt next to the training set.
// Throws kUsage if that is not at least two. Warns if `classes` is another number.
int64_t ChooseClassCount(int64_t classes, const std::string& source) {
  const std::string labels = FindLabels(source);
  const auto names = labels.empty() ? 0 : std::ssize(ReadClassNames(labels));
  if (classes > 0) {
    if (names > 0 && names != classes) {
      LOG(WARNING) << EscapeControl(Join("--classes=", classes, ", but ", labels, " has ",
                                         Counted(names, "line"),
                                         ": predictions will not show the names of the classes"));
    }
    return classes;
  }
  if (names >= 2) return names;
  throw Error(ErrorCode::kUsage,
              Join("--train needs --classes=N, the number of classes, because ",
                   labels.empty() ? Join("there is no labels.txt next to ", source)
                                  : Join(labels, " has ", Counted(names, "line"))));
}

// Completes what the flags say about the data. Throws as OpenCursor if the training set cannot be
// opened, before it misses other flags.
FineTuneOptions ReadTuning(const ImportModelOptions& options) {
  FineTuneOptions tune = options.tune;
  if (options.batch) tune.train_batch = *options.batch;
  tune.backend = DetectFormat(tune.source);
  if (tune.test_source.empty()) tune.test_source = FindTestSet(tune.source, Exists);
  if (!tune.test_source.empty()) tune.test_backend = DetectFormat(tune.test_source);
  for (const std::string& backend : {tune.backend, tune.test_backend}) {
    if (backend == "LMDB" || backend == "LEVELDB") continue;
    throw Error(ErrorCode::kUsage,
                Join("--source: the set is of the format ", backend,
                     ", but a Data layer reads LMDB or LEVELDB; convert it: trainer dataset "
                     "convert ",
                     tune.source, " train_lmdb"));
  }
  OpenCursor(tune.backend, tune.source);
  tune.classes = ChooseClassCount(tune.classes, tune.source);
  return tune;
}

// Throws as Cursor and DatumParser do if the first record of a set cannot be read, and kConfig if
// it has other channels than the image of the net or is smaller.
void CheckRecords(const std::string& format, const std::string& path, int64_t channels,
                  const caffe::TransformationParameter& transform) {
  const std::unique_ptr<Cursor> cursor = OpenCursor(format, path);
  DatumParser parser;
  const DatumView& record = parser.Parse(path, cursor->Key(), cursor->Value());
  if (record.channels != channels) {
    throw Error(ErrorCode::kConfig, {path},
                Join("the images have ", Counted(record.channels, "channel"),
                     ", but the net reads ", channels,
                     channels == 3   ? "; make the set with color images"
                     : channels == 1 ? "; make the set with gray images: trainer dataset images "
                                       "--gray"
                                     : ""));
  }
  const uint32_t size = transform.crop_size();
  const int64_t height = transform.has_crop_h() ? transform.crop_h() : size;
  const int64_t width = transform.has_crop_w() ? transform.crop_w() : size;
  if (record.height >= height && record.width >= width) {
    if (record.height >= 2 * height && record.width >= 2 * width) {
      LOG(WARNING) << EscapeControl(
          Join(path, ": the images have ", record.height, " x ", record.width,
               " pixels, and the net reads a random part of ", height, " x ", width,
               "; to show it more of them, make a set with smaller images: trainer dataset images "
               "--resize_height=",
               height + height / 7, " --resize_width=", width + width / 7));
    }
    return;
  }
  throw Error(ErrorCode::kConfig, {path},
              Join("the images have ", record.height, " x ", record.width,
                   " pixels, but the net reads ", height, " x ", width,
                   "; make the set with larger images (trainer dataset images "
                   "--resize_height=",
                   height, " --resize_width=", width,
                   "), or import the model for smaller ones: --shape=", channels, ",",
                   record.height, ",", record.width));
}

// Checks the sets of the Data layers of the net for training, whose images have `channels`.
void CheckSets(const caffe::NetParameter& net, int64_t channels) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (layer.type() != "Data") continue;
    const caffe::DataParameter& data = layer.data_param();
    CheckRecords(caffe::DataParameter::DB_Name(data.backend()), data.source(), channels,
                 layer.transform_param());
  }
}

void RefuseToReplaceFiles(const ImportModelOptions& options) {
  for (const std::string& path : {options.out, options.weights}) {
    RefuseToReplace(path, options.replace);
  }
  for (const char* kind : {"train", "solver"}) {
    if (options.train) RefuseToReplace(NameBeside(options.out, kind), options.replace);
  }
}

OnnxImportOptions ReadSizes(const ImportModelOptions& options) {
  OnnxImportOptions sizes;
  if (options.batch && !options.train) sizes.batch = options.batch;
  if (options.shape.empty()) return sizes;
  const Shape shape = ParseItemShape(options.shape);
  sizes.shapes[""].assign(shape.dims().begin(), shape.dims().end());
  return sizes;
}

// Does as ImportOnnx. The message of an error says that the shape is the user's, if it is.
ImportedNet Import(const onnx::ModelProto& model, const ImportModelOptions& options,
                   const OnnxImportOptions& sizes) {
  try {
    return ImportOnnx(model, options.model, sizes);
  } catch (const Error& error) {
    if (options.shape.empty() || error.code() != ErrorCode::kData) throw;
    throw Error(error.code(), Join(error.what(), "; the size of the input is that of --shape=",
                                   options.shape, ", so the model may need another one"));
  }
}

// Chooses how images become the input of the net, and stores it in `tune`. The flags decide first,
// then the properties of the model; without both, --train takes torchvision's way if it can.
// Returns the first line of the net's file, from which 'trainer predict' reads the way. Throws
// kUsage if the flags or --train ask for what is not possible.
std::string ChoosePixels(const ImportModelOptions& options, const onnx::ModelProto& model,
                         ImportedNet* imported, FineTuneOptions* tune) {
  const std::optional<PixelScaling> own = ReadPixelScaling(model);
  const bool takes_rgb = TakesRgbPixels(model);
  const bool is_default = options.pixels.empty() && options.train && !own && !takes_rgb;
  if ((options.pixels == "torchvision" || is_default) && TakeCaffePixels(imported)) {
    tune->means.assign(std::begin(kTorchvisionMean), std::end(kTorchvisionMean));
    tune->scale = 1;
    return ImageComment({.mean_value = JoinNumbers(tune->means, ",")});
  }
  if (options.pixels == "torchvision") {
    throw Error(ErrorCode::kUsage,
                "--pixels=torchvision: the model's input is not a color image that one convolution "
                "reads; use --pixels=raw");
  }
  const std::string name = FileNameOf(options.model);
  if (takes_rgb) {
    const std::string why =
        Join(options.model,
             ": the model takes pixels in the order red, green, blue, but this program reads blue, "
             "green, red; write it without --preprocess, or with --preprocess=bgr");
    if (options.train) throw Error(ErrorCode::kUsage, "--train: " + why);
    LOG(WARNING) << EscapeControl(why);
  }
  if (!own) return Join("Imported from ", name, ".");
  tune->means = own->means;
  tune->scale = own->scale;
  return ImageComment({.mean_value = JoinNumbers(own->means, ","),
                       .scale = own->scale == 1 ? "" : ShortestText(own->scale)});
}

// Says how the data layers make the input of pixels from 0 to 255.
std::string PixelText(const FineTuneOptions& tune) {
  return Join(tune.means.empty() ? "pixels" : Join("(pixels - (", JoinNumbers(tune.means), "))"),
              tune.scale == 1 ? "" : Join(" * ", ShortestText(tune.scale)));
}

// Throws kUsage unless the net for training has one score per class for each image, and as Compile.
void CheckScores(const FineTuneNet& tuned, int64_t classes) {
  const WarningsOnly warnings_only;
  caffe::NetParameter net = tuned.net;
  while (net.layer().rbegin()->type() == "Accuracy" ||
         net.layer().rbegin()->type() == "SoftmaxWithLoss") {
    net.mutable_layer()->RemoveLast();
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(net, &text);
  const std::unique_ptr<Device> device = MakeDevice();
  ParamStore params(*device);
  const std::unique_ptr<const Graph> graph =
      Compile(LoadNetText("the net for training", text),
              {.state = MakeNetState(caffe::TRAIN, {}), .log = false}, *device, params);
  const Shape scores = graph->Find(tuned.score).shape;
  if (scores.Count(1) == classes) return;
  throw Error(
      ErrorCode::kUsage,
      EscapeControl(Join("--train: the output of the model has the shape ", scores.ToString(),
                         ", not one score per class for each image; "
                         "write the loss and the last layer yourself")));
}

// Writes the weights and returns a line about them.
std::string WriteImportedWeights(const std::string& path, ImportedNet* imported) {
  const uint64_t bytes = imported->weights.ByteSizeLong();
  if (bytes > INT_MAX - 64 && !IsNamedAsHdf5(path) && !IsNamedAsTensorFile(path)) {
    throw Error(ErrorCode::kConfig,
                Join("the weights have ", bytes,
                     " bytes, but a .caffemodel can have at most 2 GiB - 1; give "
                     "--weights=NAME.caffemodel.h5"));
  }
  if (imported->weights.layer_size() == 0) {
    return Join("the model has no weights, so ", path, " is not written\n");
  }
  int64_t numbers = 0;
  for (const caffe::LayerParameter& layer : imported->weights.layer()) {
    for (const caffe::BlobProto& blob : layer.blobs()) numbers += blob.data_size();
  }
  WriteModel(path, imported->weights);
  return Join(path, ": ", numbers, " weights of ", Counted(imported->weights.layer_size(), "layer"),
              "\n");
}

}  // namespace

std::string ImportModel(const ImportModelOptions& options) {
  CheckImportOptions(options);
  RefuseToReplaceFiles(options);
  const OnnxImportOptions sizes = ReadSizes(options);
  FineTuneOptions tune;
  if (options.train) tune = ReadTuning(options);
  const onnx::ModelProto model = ReadOnnx(options.model);
  ImportedNet imported = Import(model, options, sizes);
  const std::string comment = ChoosePixels(options, model, &imported, &tune);
  FineTuneNet tuned;
  if (options.train) {
    tuned = MakeFineTuneNet(imported, tune);
    CheckSets(tuned.net, tuned.channels);
    CheckScores(tuned, tune.classes);
  }
  // The weights first, because they may be too large for their format.
  const std::string weights = WriteImportedWeights(options.weights, &imported);
  WriteWhole(options.out, WithComment(comment, imported.net));
  std::string text = Join(options.out, ": ", Counted(imported.net.layer_size(), "layer"), "\n");
  text += weights;
  for (const auto& [output, blob] : imported.outputs) {
    text += Join("output '", output, "' of the model: blob '", blob, "'\n");
  }
  for (const std::string& note : imported.notes) text += note + "\n";
  if (!options.train) return text;
  const std::string net = NameBeside(options.out, "train");
  const std::string solver = NameBeside(options.out, "solver");
  WriteWhole(net, WithComment(Join("Fine-tunes ", FileNameOf(options.model), "."), tuned.net));
  WriteWhole(solver, FineTuneSolverText(tune, net, solver, options.weights, StemOf(options.out)));
  if (tune.test_source.empty()) {
    text += Join("there is no test set next to ", tune.source,
                 ", so the run will have no tests: give one with --test_source=SET\n");
  }
  return text + Join(net, ": layer '", tuned.old_layer, "' is now '", tuned.new_layer, "', for ",
                     tune.classes, " classes\n", net, ": the input is ", PixelText(tune),
                     "\nnext: trainer train --solver=", solver, " --weights=", options.weights,
                     " --freeze=all-but-last --run=run\n");
}

}  // namespace trainer
