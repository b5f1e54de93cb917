#include "trainer/analysis/summary/layer_reference.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "summary/layer_examples.h"
#include "summary/schema_json.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/config/schema_doc.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

// Returns "1", "0 to 2" or "1 or more". A negative `max` means no limit.
std::string CountRange(int min, int max) {
  if (max < 0) return Join(min, " or more");
  return min == max ? Join(min) : Join(min, " to ", max);
}

// Returns the text up to its first full stop or line break.
std::string FirstSentence(std::string_view text) {
  const size_t line = std::min(text.find('\n'), text.size());
  const size_t stop = text.find(". ");
  return std::string(text.substr(0, std::min(line, stop == text.npos ? line : stop + 1)));
}

}  // namespace

std::string LayerTypesText() {
  std::string text;
  size_t width = 0;
  for (const auto& [type, doc] : LayerDocs()) width = std::max(width, type.size());
  for (const auto& [type, doc] : LayerDocs()) {
    text += type + std::string(width - type.size() + 2, ' ') +
            Wrap(FirstSentence(doc.text), width + 2, width + 2) + "\n";
  }
  return text;
}

namespace {

// Returns which number types the outputs of a layer can have.
std::string_view StorageText(DtypePolicy storage) {
  switch (storage) {
    case DtypePolicy::kF32:
      return "f32 only";
    case DtypePolicy::kConfigurable:
      return "f32, or 16 bits if forward_type is BFLOAT16 or FLOAT16";
    case DtypePolicy::kFollowsConsumers:
      return "the storage of the layers after it, or forward_type if it is set";
    default:
      return "any";
  }
}

// Returns the fields of a layer that hold this type's parameters.
std::vector<std::string> ParamFields(const std::string& type, const LayerDoc& doc) {
  std::vector<std::string> params = ParamsOfType(type);
  if (!doc.param.empty() && std::ranges::find(params, doc.param) == params.end()) {
    params.emplace_back(doc.param);
  }
  return params;
}

// Returns the example in lines that fit the terminal, and the shapes of its inputs, outputs and
// weights.
std::string ExampleText(const LayerExample& example) {
  std::string text = "\nexample:\n";
  std::istringstream lines(example.text);
  for (std::string line; std::getline(lines, line);) {
    const size_t indent = 2 + std::min(line.find_first_not_of(' '), line.size());
    const bool fits = 2 + line.size() <= kColumns;
    text += (fits ? "  " + line : std::string(indent, ' ') + Wrap(line, indent + 2, indent)) + "\n";
  }
  if (!example.inputs.empty()) text += "reads:   " + JoinList(example.inputs) + "\n";
  if (!example.outputs.empty()) text += "writes:  " + JoinList(example.outputs) + "\n";
  if (!example.weights.empty()) text += "stores:  " + JoinList(example.weights) + "\n";
  return text;
}

// Returns everything about one layer type: text, numbers of blobs, storage, example, fields.
std::string LayerTypeText(const std::string& type, const LayerDoc& doc) {
  std::string text =
      Join(type, "\n\n", Wrap(doc.text, 0),
           "\n\nbottoms: ", CountRange(doc.arity.min_in, doc.arity.max_in),
           "\ntops:    ", CountRange(doc.arity.min_out, doc.arity.max_out),
           "\nstorage: ", StorageText(doc.dtypes), "\n", ExampleText(MakeExample(type)));
  for (const std::string& param : ParamFields(type, doc)) {
    text += Join("\n", param, ":\n", Explain(param));
  }
  return text + "\n'trainer layers LayerParameter' lists the fields of every layer.\n";
}

Json TextArray(const std::vector<std::string>& texts) {
  Json array = Json::Array();
  for (const std::string& text : texts) array.Push(text);
  return array;
}

// Returns what LayerTypeText says, without the fields of the parameters.
Json LayerTypeJson(const std::string& type, const LayerDoc& doc) {
  const LayerExample example = MakeExample(type);
  return Json::Object()
      .Set("type", type)
      .Set("text", doc.text)
      .Set("bottoms", CountRange(doc.arity.min_in, doc.arity.max_in))
      .Set("tops", CountRange(doc.arity.min_out, doc.arity.max_out))
      .Set("storage", StorageText(doc.dtypes))
      .Set("params", TextArray(ParamFields(type, doc)))
      .Set("example", Json::Object()
                          .Set("text", example.text)
                          .Set("reads", TextArray(example.inputs))
                          .Set("writes", TextArray(example.outputs))
                          .Set("stores", TextArray(example.weights)));
}

}  // namespace

std::string LayerReference(const std::string& name) {
  const auto found = LayerDocs().find(name);
  if (found != LayerDocs().end()) return LayerTypeText(name, found->second);
  if (IsMessage(name)) return Explain(name);
  const std::vector<std::string> types = LayerRegistry::Get().Names();
  throw Error(ErrorCode::kUsage, Join("no layer type '", name, "'.", DidYouMean(name, types),
                                      " 'trainer layers' lists the types"));
}

Json LayersJson() {
  Json layers = Json::Array();
  for (const auto& [type, doc] : LayerDocs()) layers.Push(LayerTypeJson(type, doc));
  return Json::Object()
      .Set("layers", std::move(layers))
      .Set("messages", MessagesJson({"NetParameter"}));
}

}  // namespace trainer
