#include "trainer/config/layer_types.h"

namespace trainer {
namespace {

TypeCheck& Check() {
  static TypeCheck check = nullptr;
  return check;
}

}  // namespace

void SetTypeCheck(TypeCheck check) { Check() = check; }

ErrorList TypeErrors(const std::vector<LayerSpec>& layers) {
  ErrorCollector errors;
  if (Check() == nullptr) return {};
  for (const LayerSpec& layer : layers) errors.Try([&] { Check()(layer); });
  return errors.errors();
}

}  // namespace trainer
