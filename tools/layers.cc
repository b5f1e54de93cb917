#include <algorithm>
#include <iostream>

#include "table.h"
#include "trainer/base/text.h"
#include "trainer/config/schema_doc.h"
#include "trainer/layers/layer.h"
#include "verb.h"

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
      return "f32, or 16 bits where forward_type says BFLOAT16 or FLOAT16";
    case Storage::kFollows:
      return "that of the layers after it, or what forward_type says";
    default:
      return "any";
  }
}

void PrintType(const std::string& type, const LayerDoc& doc) {
  std::cout << type << "\n\n"
            << Wrap(doc.text, 0) << "\n\nbottoms: " << Range(doc.arity.min_in, doc.arity.max_in)
            << "\ntops:    " << Range(doc.arity.min_out, doc.arity.max_out)
            << "\nstorage: " << TextOf(doc.storage) << "\n";
  std::vector<std::string> params = ParamsOfType(type);
  if (!doc.param.empty() && std::ranges::find(params, doc.param) == params.end()) {
    params.emplace_back(doc.param);
  }
  for (const std::string& param : params)
    std::cout << "\n" << param << ":\n" << Explain(param) << "\n";
  std::cout << "\n'trainer layers LayerParameter' lists the fields that every layer has.\n";
}

class Layers final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kSettings,
        .summary = "list the layer types, or explain one",
        .usage = "trainer layers [TYPE|FIELD|MESSAGE]",
        .text =
            "With a type: what it computes, how many bottoms and tops it takes, and its fields "
            "with their defaults. With a field that holds fields of its own, or the name of such "
            "a message: those fields.",
        .examples =
            "trainer layers\n"
            "trainer layers Convolution\n"
            "trainer layers transform_param\n"
            "trainer layers LayerParameter",
        .flags = {},
        .max_words = 1,
    };
  }

  int Run(const Flags& flags) override {
    if (flags.words().empty()) {
      PrintTypes();
      return 0;
    }
    const std::string& type = flags.words()[0];
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
