#include "trainer/layers/run_context.h"

#include "trainer/base/error/error.h"

namespace trainer {

void RunContext::Resize(int i, const Shape& shape) const {
  if (resizable_ == nullptr) {
    throw Error(ErrorCode::kInternal, "a layer resized an output that was not declared to shrink");
  }
  resizable_->out_[i].shape = shape;
}

}  // namespace trainer
