// Gradients are summed in each step, so that all ranks have the same weights.

#include "trainer/strategies/strategy.h"

namespace trainer {
namespace {

class Synchronous final : public Strategy {
 public:
  explicit Synchronous(const SolverSpec&) {}
};

const RegisterStrategy<Synchronous> kSynchronous("synchronous");

}  // namespace
}  // namespace trainer
