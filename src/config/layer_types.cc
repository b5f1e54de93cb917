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
  ErrorList errors;
  if (Check() == nullptr) return errors;
  for (const LayerSpec& layer : layers) Attempt(&errors, [&] { Check()(layer); });
  return errors;
}

}  // namespace trainer
