#include "lr_policies.h"

namespace trainer {

const std::map<std::string, LrPolicy>& LrPolicies() {
  static const PolicyField kGamma = {"gamma", "0.1"}, kStepSize = {"stepsize", "1000"};
  static const std::map<std::string, LrPolicy> policies = {
      {"cosine", {}},
      {"exp", {{{"gamma", "0.999"}}, "is base_lr * gamma^iteration"}},
      {"fixed", {}},
      {"inv",
       {{{"gamma", "0.0001"}, {"power", "0.75"}}, "is base_lr * (1 + gamma * iteration)^-power"}},
      {"multistep",
       {{kGamma, {"stepvalue", "1000"}}, "is multiplied by gamma at each stepvalue iteration"}},
      {"plateau",
       {{kGamma, {"plateau_winsize", "1000"}},
        "is multiplied by gamma when the smoothed loss has not reached a new minimum for "
        "plateau_winsize iterations"}},
      {"poly", {{{"power", "1"}}, "is base_lr * (1 - iteration / max_iter)^power"}},
      {"sigmoid",
       {{{"gamma", "-0.001"}, kStepSize},
        "is base_lr / (1 + exp(-gamma * (iteration - stepsize)))"}},
      {"step", {{kGamma, kStepSize}, "is multiplied by gamma every stepsize iterations"}},
  };
  return policies;
}

}  // namespace trainer
