#include "trainer/config/layer_types.h"

namespace trainer {
namespace {

// Returns the variable that SetTypeCheck sets; it is null in a program without layers.
TypeCheck& TypeCheckSlot() {
  static TypeCheck check = nullptr;
  return check;
}

}  // namespace

void SetTypeCheck(TypeCheck check) { TypeCheckSlot() = check; }

ErrorList TypeErrors(const std::vector<LayerSpec>& layers) {
  ErrorCollector errors;
  if (TypeCheckSlot() == nullptr) return {};
  for (const LayerSpec& layer : layers) errors.Try([&] { TypeCheckSlot()(layer); });
  return errors.errors();
}

}  // namespace trainer
