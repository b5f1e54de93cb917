#include "trainer/inference/export/export_net.h"

#include <google/protobuf/text_format.h>

#include <map>
#include <optional>
#include <vector>

#include "export/preprocessing_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/inference/predict/table_prediction.h"
#include "trainer/net/compile.h"

namespace trainer {
namespace {

// Returns the shapes of one item of these blobs, as the data layers of the training net give them.
// Adds to errors how to give the shape without the data.
std::map<std::string, Shape> PlanItemShapes(const NetSpec& spec, const caffe::NetState& state,
                                            const Device& device,
                                            const std::vector<std::string>& blobs) try {
  const WarningsOnly warnings_only;
  ParamStore params(device);
  const std::unique_ptr<const Graph> graph =
      Compile(spec, {.state = state, .log = false}, device, params);
  std::map<std::string, Shape> shapes;
  for (const std::string& blob : blobs) {
    const Shape whole = graph->Find(blob).shape;
    shapes[blob] = Shape(whole.dims().subspan(whole.Rank() > 0 ? 1 : 0));
  }
  return shapes;
} catch (const Error& e) {
  throw Error(e.code(), Join(e.what(),
                             " (the net's data gives the shape of the input; if the data is not "
                             "there, give the shape of one item, such as --shape=3,227,227)"));
}

// Adds a shape to each Input layer that has none: `batch`, then the shape of one item of each top.
void SetInputShapes(const std::map<std::string, Shape>& shapes, int batch,
                    caffe::NetParameter* net) {
  for (caffe::LayerParameter& layer : *net->mutable_layer()) {
    if (layer.type() != "Input" || layer.input_param().shape_size() > 0) continue;
    for (const std::string& top : layer.top()) {
      caffe::BlobShape* shape = layer.mutable_input_param()->add_shape();
      shape->add_dim(batch);
      for (const int64_t dim : shapes.at(top).dims()) shape->add_dim(dim);
    }
  }
}

// Returns the comment on preprocessing; "" if the net reads neither tables nor images.
std::string DescribePreprocessing(const NetSpec& net, const caffe::NetState& state) {
  const std::string table = FindTableSet(net, state);
  if (!table.empty()) return EscapeControl(kTableComment + table);
  const std::optional<std::string> flags = PreprocessingFlags(net, state);
  if (!flags) return "";
  if (flags->empty()) return kRawPixelsComment;
  const bool is_unknown = flags->find("=H,W") != std::string::npos;
  return EscapeControl(Join(kPreprocessComment, *flags, is_unknown ? kUnknownSizeNote : ""));
}

}  // namespace

Shape ParseItemShape(const std::string& text) {
  std::vector<int64_t> dims;
  for (const std::string& word : SplitList(text)) {
    const std::optional<int64_t> dim = ParseNumber<int64_t>(word);
    if (!dim || *dim < 1) {
      throw Error(ErrorCode::kUsage,
                  Join("--shape=", text, ": '", word,
                       "' is not a positive whole number; write --shape=3,227,227"));
    }
    dims.push_back(*dim);
  }
  return Shape(std::span<const int64_t>(dims));
}

ExportedNet ExportNet(const NetSpec& written, const Device& device, const ExportOptions& options) {
  const NetSpec net = WithDataForTests(written, options.spec.state);
  ExportedNet exported;
  exported.net = MakeInferenceSpec(net, options.spec);
  const std::vector<std::string> inputs = InputsWithoutShape(exported.net);
  std::map<std::string, Shape> shapes;
  if (options.shape) {
    for (const std::string& input : inputs) shapes[input] = *options.shape;
  } else if (!inputs.empty()) {
    shapes = PlanItemShapes(net, options.spec.state, device, inputs);
  }
  SetInputShapes(shapes, options.batch, &exported.net);
  exported.preprocessing = DescribePreprocessing(net, options.spec.state);
  return exported;
}

std::string ToText(const ExportedNet& exported) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(exported.net, &text);
  if (exported.preprocessing.empty()) return text;
  return Join("# ", exported.preprocessing, "\n", text);
}

}  // namespace trainer
