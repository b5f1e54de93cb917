#pragma once
// An update rule: how a gradient moves a weight. One file in src/rules/ defines one.

#include <concepts>
#include <memory>
#include <string_view>

#include "trainer/backend/device.h"
#include "trainer/base/registry.h"
#include "trainer/base/text.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// One parameter at one iteration. All arrays are f32 on the device, `count` long.
struct ParamSlice {
  int64_t count = 0;
  float* weight = nullptr;
  float* grad = nullptr;                 // the sum over iter_size passes and replicas
  float* state[2] = {};                  // as many as StatesPerWeight()
  float rate = 0;                        // learning rate times lr_mult, or what larc puts there
  float momentum = 0;                    // of this iteration, by momentum_policy
  float grad_scale = 1;                  // what makes the mean of that sum, times a clip's factor
  float decay_l1 = 0, decay_l2 = 0;      // weight_decay times decay_mult
  bool decays = true;                    // decay_mult is not 0: no bias and no scale of a norm
  float weight_norm = 0, grad_norm = 0;  // 2-norms, of the averaged and clipped gradient without
                                         // decay; only for a rule that needs them
  bool clear_grad = true;                // set grad to zero in the same pass
  int iter = 0;                          // updates done before this one
};

// Used by one thread.
class Rule {
 public:
  virtual ~Rule() = default;
  // Numbers of state per weight, 0 to 2, all zero at the start. Their order is that of a
  // solverstate: every parameter's first, then every parameter's second.
  virtual int StatesPerWeight() const = 0;
  // Whether Step reads weight_norm and grad_norm, which cost two passes over memory.
  virtual bool NeedsNorms() const { return false; }
  virtual void Step(const Device& device, const ParamSlice& slice) = 0;
};

using RuleRegistry = Registry<Rule, const SolverSpec&>;

// const RegisterRule<Sgd> kSgd("SGD");
template <class T>
struct RegisterRule {
  explicit RegisterRule(const char* type) {
    RuleRegistry::Get().Add(
        type, [](const SolverSpec& spec) { return std::unique_ptr<Rule>(new T(spec)); });
  }
};

// Throws kConfig when the solver sets a momentum: `type` has none.
void RefuseMomentum(const SolverSpec& spec, std::string_view type);
// Throws kConfig when the solver asks for L1: `type` defines its decay for L2 alone.
void RefuseL1(const SolverSpec& spec, std::string_view type);

// Makes the rule of the solver's `type`, or throws kConfig at its line naming the nearest type, of
// the rules and of `others`.
std::unique_ptr<Rule> MakeRule(const SolverSpec& spec, const std::vector<std::string>& others = {});

}  // namespace trainer
