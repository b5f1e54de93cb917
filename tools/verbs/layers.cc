#include <iostream>
#include <string>
#include <vector>

#include "flag_groups.h"
#include "trainer/analysis/summary/layer_reference.h"
#include "trainer/base/error/error.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

// Prints the layer types, or the reference page of one type.
class Layers final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    DeclareJson(flags, &json_);
    flags.BindWords(&names_, 1);
  }

  int Run() override {
    if (names_.empty()) {
      std::cout << (json_ ? LayersJson().ToString() : LayerTypesText());
      return 0;
    }
    if (json_) {
      throw Error(ErrorCode::kUsage, "--json prints all layer types; give it without a type");
    }
    std::cout << LayerReference(names_[0]);
    return 0;
  }

 private:
  bool json_ = false;
  std::vector<std::string> names_;
};

const RegisterVerb<Layers> kLayers("layers");

}  // namespace
}  // namespace trainer
