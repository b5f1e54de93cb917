#include "trainer/inference/inspect/inspection.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "inspect/input_gradient.h"
#include "inspect/mosaic.h"
#include "inspect/saliency.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/config/name_pattern.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

constexpr size_t kMostFilters = 3;  // layers whose filters are shown

std::vector<float> ReadValues(const Net& net, const Tensor& value) {
  std::vector<float> values(static_cast<size_t>(value.Count()));
  net.ReadNchw(value, values);
  return values;
}

// Returns "96 x 55 x 55".
std::string SizesText(std::span<const int64_t> dims) {
  std::string text;
  for (const int64_t dim : dims) text += Join(text.empty() ? "" : " x ", dim);
  return text.empty() ? "1 value" : text;
}

// Returns "from -1.5 to 3, mean 0.2, 40 % zeros".
std::string RangeText(std::span<const float> values) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t finite = 0, zeros = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min<double>(low, value);
    high = std::max<double>(high, value);
    sum += value;
    ++finite;
    if (value == 0) ++zeros;
  }
  const int64_t others = std::ssize(values) - finite;
  std::string text;
  if (finite > 0) {
    text = Join("from ", static_cast<float>(low), " to ", static_cast<float>(high), ", mean ",
                static_cast<float>(sum / static_cast<double>(finite)));
  }
  if (zeros > 0) text += Join(", ", std::lround(100.0 * zeros / std::ssize(values)), " % zeros");
  if (others > 0) text += Join(text.empty() ? "" : ", ", others, " not finite");
  return text;
}

// Returns "the first 256 of 512", or "" if all tiles are drawn.
std::string PartText(int64_t tiles) {
  return tiles > kMosaicTiles ? Join("the first ", kMosaicTiles, " of ", tiles) : "";
}

void AddLine(const std::string& line, std::vector<std::string>* lines) {
  if (!line.empty()) lines->push_back(line);
}

// Returns the shape (N, C, H, W) of a layer's filters; nothing if the layer has no filters larger
// than one value. The rows of an inner product that reads an image count as filters, too.
std::optional<Shape> FiltersOf(const Node& node, const Graph& graph) {
  if (node.params.empty() || node.in.empty()) return std::nullopt;
  const Shape& weight = node.params[0]->shape;
  if (weight.Rank() == 4 && weight.Count(2) > 1) return weight;
  const Shape& in = graph.values[node.in[0]].shape;
  const bool is_product = node.spec.type() == "InnerProduct" && in.IsImage() && in.Count(2) > 1;
  if (!is_product || node.spec.proto().inner_product_param().transpose()) return std::nullopt;
  if (weight[1] != in.Count(1)) return std::nullopt;
  return Shape{weight[0], in[1], in[2], in[3]};
}

std::vector<PageImage> DrawFilters(const Net& net) {
  std::vector<PageImage> images;
  std::set<const Param*> drawn;
  for (const Node& node : net.graph().nodes) {
    if (images.size() == kMostFilters) break;
    const std::optional<Shape> shape = FiltersOf(node, net.graph());
    if (!shape || !drawn.insert(node.params[0]).second) continue;
    const Param& param = *node.params[0];
    std::vector<float> values(static_cast<size_t>(param.count()));
    net.store().Export(param, param.weight, values);
    PageImage& one = images.emplace_back();
    one.image = MakeTiles(values, shape->dims());
    one.caption = {Join(node.spec.name(), " (", node.spec.type(), ")"), SizesText(shape->dims()),
                   RangeText(values)};
    const int64_t maps = (*shape)[0] * (*shape)[1];
    AddLine(PartText((*shape)[1] == 3 ? maps / 3 : maps), &one.caption);
  }
  return images;
}

// Returns whether the page shows the node's output as an image. The page does not show the input
// again, nor a reshaped view that repeats the same values.
bool IsShown(const Net& net, const Node& node, ValueId id) {
  if (node.is_cast || node.spec.type() == "Input" || net.Value(id).Count() == 0) return false;
  const Value& value = net.graph().values[id];
  return !value.view_of || !(net.graph().values[value.view_of].shape == value.shape);
}

PageImage DrawOutput(const Net& net, const Node& node, ValueId id) {
  const Tensor value = net.Value(id);
  const std::vector<float> values = ReadValues(net, value);
  const bool has_batch = value.shape.Rank() > 1 && value.shape[0] == 1;
  const std::span<const int64_t> dims = value.shape.dims().subspan(has_batch ? 1 : 0);
  PageImage one;
  one.image = MakeMosaic(values, dims);
  one.caption = {Join(node.spec.name(), " (", node.spec.type(), ")"), SizesText(dims),
                 RangeText(values)};
  const std::string& blob = net.graph().values[id].name;
  if (blob != node.spec.name()) one.caption[0] += Join(", blob ", blob);
  const bool has_maps = dims.size() > 2 && dims[dims.size() - 2] * dims.back() > 1;
  if (has_maps) {
    AddLine(PartText(value.Count() / (dims[dims.size() - 2] * dims.back())), &one.caption);
  }
  return one;
}

// Returns the names of the layers that `layers` selects; all layers if it is empty. Throws kUsage
// for an item that selects no layer.
std::set<std::string> SelectLayers(const Net& net, const std::vector<std::string>& layers) {
  std::vector<std::string> names;
  for (const Node& node : net.graph().nodes) {
    if (!node.is_cast && node.spec.type() != "Split") names.push_back(node.spec.name());
  }
  if (layers.empty()) return {names.begin(), names.end()};
  std::set<std::string> selected;
  for (const std::string& text : layers) {
    const std::string flag = Join("--layers=", text);
    const NamePattern pattern(text, flag);
    std::vector<std::string> found;
    std::ranges::copy_if(names, std::back_inserter(found),
                         [&](const std::string& name) { return pattern.Matches(name); });
    if (found.empty()) {
      throw Error(ErrorCode::kUsage, EscapeControl(Join(flag, ": ", NoMatch(text, names),
                                                        " The layers are: ", FirstNames(names))));
    }
    selected.insert(found.begin(), found.end());
  }
  return selected;
}

std::vector<PageImage> DrawOutputs(const Net& net, const std::set<std::string>& layers) {
  std::vector<PageImage> images;
  for (const Node& node : net.graph().nodes) {
    for (const ValueId id : node.out) {
      if (!layers.contains(node.spec.name()) || !IsShown(net, node, id)) continue;
      images.push_back(DrawOutput(net, node, id));
    }
  }
  return images;
}

// Returns the name of the class with this index or "class 3". In a map of scores, returns the
// place: "3, 10, 12" is channel 3, row 10, column 12.
std::string AnswerName(size_t index, std::span<const int64_t> dims,
                       const std::vector<std::string>& names) {
  if (!names.empty()) return names[index];
  auto rest = static_cast<int64_t>(index);
  if (std::ranges::all_of(dims.subspan(1), [](int64_t dim) { return dim == 1; })) {
    return Join("class ", rest);
  }
  std::string place;
  for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) {
    place = Join(rest % dims[axis], place.empty() ? "" : ", ", place);
  }
  return place;
}

}  // namespace

InspectionPage Inspect(InferenceNet& inference, const InspectionOptions& options) {
  Net& net = inference.net();
  const Tensor input = ImageInput(net).value;
  const NetOutput scores = ChooseScores(net, options.output);
  const std::set<std::string> layers = SelectLayers(net, options.layers);
  std::vector<float> image;
  ImagePreprocessor(input.shape, options.preprocess).Read(options.image, &image);
  net.WriteNchw(image, input);
  net.Forward();
  InspectionPage page;
  page.title = Join(net.graph().name.empty() ? FileNameOf(inference.spec().file) : net.graph().name,
                    ": ", FileNameOf(options.image));
  const std::vector<float> row = ReadValues(net, scores.value);
  const std::vector<size_t> best = TopClasses(row, static_cast<size_t>(options.top));
  for (const size_t index : best) {
    page.answers.emplace_back(
        AnswerName(index, scores.value.shape.dims().subspan(1), options.names),
        Fixed(static_cast<double>(row[index]), 4));
  }
  page.input.push_back(
      {MakeTiles(image, input.shape.dims()), {"the image, as the net reads it", RangeText(image)}});
  const std::vector<float> gradient =
      InputGradient(inference.spec(), net, scores.name).Compute(image, best.at(0));
  if (gradient.empty()) {
    page.note =
        "There is no saliency, because a layer between the image and the scores has no "
        "gradient.";
  } else {
    page.input.push_back(
        {MakeSaliency(gradient, input.shape),
         {Join("saliency of ", page.answers[0].first), "bright pixels change the score most"}});
  }
  page.filters = DrawFilters(net);
  page.outputs = DrawOutputs(net, layers);
  return page;
}

}  // namespace trainer
