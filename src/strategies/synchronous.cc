// Synchronous data parallelism: gradients are all-reduced in each step, so all ranks have the same
// weights. The defaults of Strategy do all of it.

#include "trainer/strategies/strategy.h"

namespace trainer {
namespace {

// Implements strategy synchronous: all ranks make every step together with all-reduced gradients.
class Synchronous final : public Strategy {
 public:
  explicit Synchronous(const SolverSpec&) : Strategy({}) {}
};

const RegisterStrategy<Synchronous> kSynchronous("synchronous");

}  // namespace
}  // namespace trainer
