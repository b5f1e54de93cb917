#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "layer_examples.h"
#include "schema_json.h"
#include "shared_flags.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/config/schema_doc.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

// "1", "0 to 2", "1 or more"
std::string Range(int min, int max) {
  if (max < 0) return Join(min, " or more");
  return min == max ? Join(min) : Join(min, " to ", max);
}

std::string FirstSentence(std::string_view text) {
  const size_t line = std::min(text.find('\n'), text.size());
  const size_t stop = text.find(". ");
  return std::string(text.substr(0, std::min(line, stop == text.npos ? line : stop + 1)));
}

void PrintTypes() {
  size_t width = 0;
  for (const auto& [type, doc] : LayerDocs()) width = std::max(width, type.size());
  for (const auto& [type, doc] : LayerDocs()) {
    std::cout << type << std::string(width - type.size() + 2, ' ')
              << Wrap(FirstSentence(doc.text), width + 2, width + 2) << "\n";
  }
}

std::string_view TextOf(Storage storage) {
  switch (storage) {
    case Storage::kF32:
      return "f32 only";
    case Storage::kChosen:
      return "f32, or 16 bits if forward_type is BFLOAT16 or FLOAT16";
    case Storage::kFollows:
      return "the storage of the layers after it, or forward_type if it is set";
    default:
      return "any";
  }
}

// The fields of a layer that hold this type's parameters.
std::vector<std::string> ParamsOf(const std::string& type, const LayerDoc& doc) {
  std::vector<std::string> params = ParamsOfType(type);
  if (!doc.param.empty() && std::ranges::find(params, doc.param) == params.end()) {
    params.emplace_back(doc.param);
  }
  return params;
}

void PrintExample(const LayerExample& example) {
  std::cout << "\nexample:\n";
  std::istringstream lines(example.text);
  for (std::string line; std::getline(lines, line);) {
    const size_t indent = 2 + std::min(line.find_first_not_of(' '), line.size());
    const bool fits = 2 + line.size() <= kColumns;
    std::cout << (fits ? "  " + line : std::string(indent, ' ') + Wrap(line, indent + 2, indent))
              << "\n";
  }
  if (!example.inputs.empty()) std::cout << "reads:   " << JoinList(example.inputs) << "\n";
  if (!example.outputs.empty()) std::cout << "writes:  " << JoinList(example.outputs) << "\n";
  if (!example.weights.empty()) std::cout << "stores:  " << JoinList(example.weights) << "\n";
}

void PrintType(const std::string& type, const LayerDoc& doc) {
  std::cout << type << "\n\n"
            << Wrap(doc.text, 0) << "\n\nbottoms: " << Range(doc.arity.min_in, doc.arity.max_in)
            << "\ntops:    " << Range(doc.arity.min_out, doc.arity.max_out)
            << "\nstorage: " << TextOf(doc.storage) << "\n";
  PrintExample(ExampleOf(type));
  for (const std::string& param : ParamsOf(type, doc))
    std::cout << "\n" << param << ":\n" << Explain(param) << "\n";
  std::cout << "\n'trainer layers LayerParameter' lists the fields of every layer.\n";
}

Json TextsJson(const std::vector<std::string>& texts) {
  Json array = Json::Array();
  for (const std::string& text : texts) array.Push(text);
  return array;
}

Json TypeJson(const std::string& type, const LayerDoc& doc) {
  const LayerExample example = ExampleOf(type);
  return Json::Object()
      .Set("type", type)
      .Set("text", doc.text)
      .Set("bottoms", Range(doc.arity.min_in, doc.arity.max_in))
      .Set("tops", Range(doc.arity.min_out, doc.arity.max_out))
      .Set("storage", TextOf(doc.storage))
      .Set("params", TextsJson(ParamsOf(type, doc)))
      .Set("example", Json::Object()
                          .Set("text", example.text)
                          .Set("reads", TextsJson(example.inputs))
                          .Set("writes", TextsJson(example.outputs))
                          .Set("stores", TextsJson(example.weights)));
}

void PrintAllJson() {
  Json layers = Json::Array();
  for (const auto& [type, doc] : LayerDocs()) layers.Push(TypeJson(type, doc));
  std::cout << Json::Object()
                   .Set("layers", std::move(layers))
                   .Set("messages", MessagesJson({"NetParameter"}))
                   .ToString();
}

class Layers final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kSettings,
        .summary = "list the layer types, or explain one",
        .usage = "trainer layers [TYPE|FIELD|MESSAGE] [--json]",
        .text =
            "With a layer type: prints what it computes, the number of its bottoms and tops, an "
            "example with the shapes that it reads, writes and stores, and its fields with their "
            "defaults. With the name of a message, or of a field that is a message: prints the "
            "fields of the message.\n"
            "--json prints all of this for all types, for editors and other programs.",
        .examples =
            "trainer layers\n"
            "trainer layers Convolution\n"
            "trainer layers transform_param\n"
            "trainer layers LayerParameter\n"
            "trainer layers --json",
        .flags = {JsonFlag()},
        .max_words = 1,
    };
  }

  int Run(const Flags& flags) override {
    if (flags.words().empty()) {
      flags.Switch("json") ? PrintAllJson() : PrintTypes();
      return 0;
    }
    const std::string& type = flags.words()[0];
    if (flags.Switch("json")) {
      throw Error(ErrorCode::kUsage, "--json prints all layer types; give it without a type");
    }
    const auto found = LayerDocs().find(type);
    if (found == LayerDocs().end() && IsMessage(type)) {
      std::cout << Explain(type);
      return 0;
    }
    if (found == LayerDocs().end()) {
      const std::vector<std::string> types = LayerRegistry::Get().Names();
      throw Error(ErrorCode::kUsage, Join("no layer type '", type, "'.", DidYouMean(type, types),
                                          " 'trainer layers' lists the types"));
    }
    PrintType(type, found->second);
    return 0;
  }
};

const RegisterVerb<Layers> kLayers("layers");

}  // namespace
}  // namespace trainer
