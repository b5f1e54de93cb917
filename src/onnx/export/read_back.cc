#include "trainer/onnx/read_back.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/random/philox.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_state.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/blob_source.h"
#include "trainer/net/weights.h"
#include "trainer/onnx/import_onnx.h"
#include "trainer/onnx/onnx_file.h"

namespace trainer {
namespace {

constexpr uint64_t kReadBackSeed = 1;

// Returns random numbers for the input of this name.
std::vector<float> RandomInput(const std::string& name, int64_t count, float range) {
  const PhiloxKey key{kReadBackSeed, RngStreamOf(name, caffe::TEST)};
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = range * UniformFloat(PhiloxWord(key, 0, i));
  }
  return numbers;
}

// Applies the preprocessing of the model to pixels of shape (N, C, H, W).
void Preprocess(const OnnxPreprocessing& how, const Shape& shape, std::vector<float>* pixels) {
  const auto channels = static_cast<size_t>(shape[1]);
  const auto plane = static_cast<size_t>(shape.Count(2));
  const std::vector<float> from = *pixels;
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t place = i % plane, c = i / plane % channels, item = i / plane / channels;
    const size_t source = how.rgb && channels == 3 ? channels - 1 - c : c;
    const float mean = how.mean.empty()              ? 0
                       : how.mean.size() == channels ? how.mean[c]
                                                     : how.mean[c * plane + place];
    (*pixels)[i] =
        (from[(item * channels + source) * plane + place] * how.factor - mean) * how.scale;
  }
}

// Fills the inputs of both nets with the same numbers. The model's net has no input that its
// outputs do not depend on.
void FillBoth(Net& net, Net& read, const OnnxExportOptions& options, bool with_zeros) {
  std::map<std::string, Tensor> of_read;
  for (const InputBlob& input : InputBlobs(read)) of_read[input.name] = input.value;
  for (const InputBlob& input : InputBlobs(net)) {
    const float range = with_zeros ? 0.0f : options.preprocessing ? 255.0f : 1.0f;
    std::vector<float> numbers = RandomInput(input.name, input.value.Count(), range);
    if (of_read.contains(input.name)) {
      const Tensor& same = of_read.at(input.name);
      if (same.Count() != input.value.Count()) {
        throw Error(ErrorCode::kData, Join("the input '", input.name, "' has another size"));
      }
      read.WriteNchw(numbers, same);
    }
    if (options.preprocessing) {
      Preprocess(*options.preprocessing, input.value.shape, &numbers);
    }
    net.WriteNchw(numbers, input.value);
  }
}

// Sets the states of recurrent layers to 0, because each call of the model begins with zeros.
void ResetStates(const Net& net) {
  for (const NodeId id : net.graph().nodes.Ids()) {
    const std::span<std::byte> state = net.StateOf(id);
    if (!state.empty()) net.device().Zero(state.data(), state.size());
  }
}

// Runs both nets on random numbers. If an input holds indices and refuses them, uses zeros instead.
void RunBoth(Net& net, Net& read, const OnnxExportOptions& options) {
  for (const bool with_zeros : {false, true}) {
    try {
      FillBoth(net, read, options, with_zeros);
      ResetStates(net);
      net.Forward();
      break;
    } catch (const Error&) {
      if (with_zeros) throw;
    }
  }
  read.Forward();
}

std::vector<float> ReadValue(const Net& net, const std::string& blob) {
  const Tensor value = net.Value(blob);
  std::vector<float> numbers(static_cast<size_t>(value.Count()));
  net.ReadNchw(value, numbers);
  return numbers;
}

// Updates the result with one output. A number that is finite in only one of the nets counts as an
// infinite difference.
void CompareOutput(const std::string& name, const std::vector<float>& expected,
                   const std::vector<float>& actual, ReadBackResult* result) {
  float difference = expected.size() == actual.size() ? 0 : INFINITY, largest = 0;
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    if (expected[i] == actual[i]) continue;
    const float apart = std::fabs(expected[i] - actual[i]);
    const bool both_nan = std::isnan(expected[i]) && std::isnan(actual[i]);
    if (!both_nan) difference = std::isnan(apart) ? INFINITY : std::max(difference, apart);
  }
  for (const float value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  const ReadBackResult other{name, difference, largest, ""};
  if (result->output.empty() || other.Relative() > result->Relative()) *result = other;
}

}  // namespace

std::string ToText(const ReadBackResult& result) {
  if (!result.why_not.empty()) {
    return Join("Read back, but not compared with the net: ", result.why_not);
  }
  return Join("Read back: the largest difference from the net is ", result.difference, " in '",
              result.output, "', whose numbers are up to ", result.largest);
}

ReadBackResult CompareWithModel(const std::string& path, Net& net,
                                const OnnxExportOptions& options) {
  const onnx::ModelProto model = ReadOnnx(path);
  ReadBackResult result;
  const std::vector<InputBlob> inputs = InputBlobs(net);
  OnnxImportOptions importing;
  if (!inputs.empty()) importing.batch = inputs[0].value.shape[0];
  try {
    const WarningsOnly warnings_only;
    const ImportedNet imported = ImportOnnx(model, path, importing);
    std::string text;
    google::protobuf::TextFormat::PrintToString(imported.net, &text);
    const NetSpec spec = LoadNetText(path, text);
    caffe::NetState state;
    state.set_phase(caffe::TEST);
    InferenceNet read(spec, net.device(), {.state = state, .memory = BufferReuse::kSeparate});
    CopyWeights(imported.weights, path, read.net());
    RunBoth(net, read.net(), options);
    for (const onnx::ValueInfoProto& output : model.graph().output()) {
      const auto blob = imported.outputs.find(output.name());
      const bool is_blob = net.graph().latest_by_name.contains(output.name());
      if (blob == imported.outputs.end() || !is_blob) continue;
      CompareOutput(output.name(), ReadValue(net, output.name()),
                    ReadValue(read.net(), blob->second), &result);
    }
    if (result.output.empty()) result.why_not = "no output has the name of a blob";
  } catch (const Error& error) {
    result.why_not = error.what();
  }
  return result;
}

}  // namespace trainer
