#include "trainer/run/model_import/import_model.h"

#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/export_weights.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/checkpoint/tensor_model.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/onnx/onnx_file.h"
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
  if (record.height >= height && record.width >= width) return;
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

// Changes the first layer to take pixels, if the flags ask for it. Returns whether it did. Throws
// kUsage if that is not possible and was asked for.
bool ChoosePixels(const ImportModelOptions& options, ImportedNet* imported) {
  if (options.pixels == "raw" || (options.pixels.empty() && !options.train)) return false;
  if (TakeCaffePixels(imported)) return true;
  if (options.pixels.empty()) return false;
  throw Error(ErrorCode::kUsage,
              "--pixels=torchvision: the model's input is not a color image that one convolution "
              "reads; use --pixels=raw");
}

// Returns the numbers of a property of the model; empty if it is missing or not of numbers.
std::vector<float> NumbersOf(const onnx::ModelProto& model, const std::string& key) {
  std::vector<float> numbers;
  for (const onnx::StringStringEntryProto& property : model.metadata_props()) {
    if (property.key() != key) continue;
    for (const std::string& word : SplitList(property.value(), ' ')) {
      const std::optional<float> number = ParseNumber<float>(word);
      if (!number) return {};
      numbers.push_back(*number);
    }
  }
  return numbers;
}

// Returns the first line of the net's file. A model of `trainer export` says how images are
// prepared, in the words of OpenVINO; 'trainer predict' reads that from the line.
std::string FirstComment(const onnx::ModelProto& model, const std::string& name,
                         bool takes_pixels) {
  if (takes_pixels) return Join(kPreprocessComment, "--mean_value=103.53,116.28,123.675");
  const std::vector<float> means = NumbersOf(model, "model_info mean_values");
  const std::vector<float> scales = NumbersOf(model, "model_info scale_values");
  bool reverses = false;
  for (const onnx::StringStringEntryProto& property : model.metadata_props()) {
    reverses = reverses ||
               (property.key() == "model_info reverse_input_channels" && property.value() == "YES");
  }
  const bool one_scale =
      !scales.empty() && std::ranges::all_of(scales, [&](float s) { return s == scales[0]; });
  if (means.empty() || !one_scale || reverses || scales[0] == 0) {
    return Join("Imported from ", name, ".");
  }
  std::vector<std::string> words;
  for (const float mean : means) words.push_back(ShortestText(mean));
  return Join(kPreprocessComment, "--mean_value=", JoinList(words, ","),
              " --scale=", ShortestText(1 / scales[0]));
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
  const bool takes_pixels = ChoosePixels(options, &imported);
  FineTuneNet tuned;
  if (options.train) {
    tuned = MakeFineTuneNet(imported, tune, takes_pixels);
    CheckSets(tuned.net, tuned.channels);
  }
  const std::string name = FileNameOf(options.model);
  // The weights first, because they may be too large for their format.
  const std::string weights = WriteImportedWeights(options.weights, &imported);
  WriteWhole(options.out, WithComment(FirstComment(model, name, takes_pixels), imported.net));
  std::string text = Join(options.out, ": ", Counted(imported.net.layer_size(), "layer"), "\n");
  text += weights;
  for (const auto& [output, blob] : imported.outputs) {
    text += Join("output '", output, "' of the model: blob '", blob, "'\n");
  }
  for (const std::string& note : imported.notes) text += note + "\n";
  if (!options.train) return text;
  const std::string net = NameBeside(options.out, "train");
  const std::string solver = NameBeside(options.out, "solver");
  WriteWhole(net, WithComment(Join("Fine-tunes ", name, "."), tuned.net));
  WriteWhole(solver, FineTuneSolverText(tune, net, solver, options.weights, StemOf(options.out)));
  if (tune.test_source.empty()) {
    text += Join("there is no test set next to ", tune.source,
                 ", so the run will have no tests: give one with --test_source=SET\n");
  }
  return text + Join(net, ": layer '", tuned.old_layer, "' is now '", tuned.new_layer, "', for ",
                     tune.classes, " classes\nnext: trainer train --solver=", solver,
                     " --weights=", options.weights, " --freeze=all-but-last --run=run\n");
}

}  // namespace trainer
