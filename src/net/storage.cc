#include "trainer/net/storage.h"

#include <algorithm>

#include "graph.h"

namespace trainer {

bool NeedsLossScale(const Net& net) {
  return std::ranges::any_of(net.graph().values, [](const ValueInfo& value) {
    return value.has_grad && value.dtype == DType::kF16;
  });
}

}  // namespace trainer
