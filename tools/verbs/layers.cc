#include <iostream>

#include "shared_flags.h"
#include "trainer/analysis/summary/layer_reference.h"
#include "trainer/base/error/error.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

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
    const bool json = flags.Switch("json");
    if (flags.words().empty()) {
      std::cout << (json ? LayersJson().ToString() : LayerTypesText());
      return 0;
    }
    if (json) {
      throw Error(ErrorCode::kUsage, "--json prints all layer types; give it without a type");
    }
    std::cout << LayerReference(flags.words()[0]);
    return 0;
  }
};

const RegisterVerb<Layers> kLayers("layers");

}  // namespace
}  // namespace trainer
