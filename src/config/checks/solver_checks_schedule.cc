// Checks of the learning rate and the momentum.

#include <algorithm>
#include <string>
#include <vector>

#include "checks/solver_checks.h"
#include "trainer/base/text/text.h"

namespace trainer {

void SolverChecks::CheckPolicy() const {
  std::vector<std::string> names;
  for (const auto& entry : LrPolicies()) names.push_back(entry.first);
  if (!proto_.has_lr_policy()) {
    solver_.Fail("lr_policy", "lr_policy is missing; it is one of " + JoinList(names));
  }
  const auto policy = LrPolicies().find(proto_.lr_policy());
  if (policy == LrPolicies().end()) {
    solver_.Fail("lr_policy",
                 Join("unknown lr_policy '", proto_.lr_policy(), "'.",
                      DidYouMean(proto_.lr_policy(), names), " It is one of ", JoinList(names)));
  }
  RequireFieldsOf(policy->first, policy->second);
  if (policy->first == "step") AtLeast("stepsize", 1);
  if (policy->first == "plateau") CheckPlateau();
  if (policy->first != "sigmoid" && proto_.gamma() < 0) {
    solver_.Fail("gamma", Join("gamma is ", proto_.gamma(), "; lr_policy '", policy->first,
                               "' needs 0 or more"));
  }
}

void SolverChecks::RequireFieldsOf(const std::string& name, const LrPolicy& policy) const {
  std::vector<std::string> missing, lines;
  for (const PolicyField& field : policy.needs) {
    if (Given(field.name)) continue;
    if (std::string(field.name) == "stepvalue" && Given("stepvalue_epoch")) continue;
    missing.emplace_back(field.name);
    lines.push_back(Join(field.name, ": ", field.example));
  }
  if (missing.empty()) return;
  // A solver that names one policy and gives the field of the other may mean either of them.
  const char* const other = name == "step" && (Given("stepvalue") || Given("stepvalue_epoch"))
                                ? "multistep"
                            : name == "multistep" && Given("stepsize") ? "step"
                                                                       : nullptr;
  solver_.Fail("lr_policy",
               Join("lr_policy '", name, "' needs ", JoinList(missing, " and "),
                    ", but the solver does not set them: the learning rate ", policy.does,
                    "; write e.g. ", JoinList(lines, " "),
                    other == nullptr ? ""
                                     : Join(", or lr_policy: \"", other,
                                            "\", for which the solver has the field")));
}

void SolverChecks::CheckPlateau() const {
  if (!(proto_.gamma() > 0 && proto_.gamma() <= 1)) {
    solver_.Fail("gamma", Join("gamma is ", proto_.gamma(),
                               ", but lr_policy 'plateau' lowers the learning rate by this factor; "
                               "it must be above 0 and at most 1, such as 0.1"));
  }
  for (int i = 0; i < proto_.plateau_winsize_size(); ++i) {
    if (proto_.plateau_winsize(i) >= 1) continue;
    solver_.Fail("plateau_winsize",
                 Join("plateau_winsize is ", proto_.plateau_winsize(i),
                      "; it must be at least 1, the number of iterations without a lower loss "
                      "after which the learning rate is multiplied by gamma"),
                 i);
  }
}

void SolverChecks::CheckSteps() const {
  for (int i = 0; i < proto_.stepvalue_size(); ++i) {
    const int before = i == 0 ? -1 : proto_.stepvalue(i - 1);
    if (proto_.stepvalue(i) <= before) {
      solver_.Fail("stepvalue",
                   i == 0 ? Join("stepvalue is ", proto_.stepvalue(i), "; it must be 0 or more")
                          : Join("stepvalue ", proto_.stepvalue(i), " comes after ", before,
                                 "; the values must increase"),
                   i);
    }
  }
}

void SolverChecks::CheckWarmup() const {
  const int warmup = proto_.warmup_iter(), rampup = proto_.rampup_interval();
  if (warmup > 0 && rampup > 0) {
    solver_.Fail("rampup_interval",
                 "warmup_iter and rampup_interval are both given: they are two kinds of warm-up; "
                 "remove one");
  }
  for (const char* start : {"warmup_lr", "warmup_start_lr"}) {
    if (Given(start) && warmup == 0) {
      solver_.Fail(start, Join(start,
                               " is given without warmup_iter, the number of warm-up iterations; "
                               "add warmup_iter"));
    }
  }
  if (proto_.has_warmup_lr() && proto_.has_warmup_start_lr()) {
    solver_.Fail(
        "warmup_start_lr",
        "warmup_lr and warmup_start_lr are both given: warmup_lr is the start of a warm-up to "
        "the learning rate of lr_policy, warmup_start_lr of one to base_lr; remove one");
  }
  if (!proto_.has_max_epoch() && proto_.max_iter() > 0) CheckLength();
  const std::string& policy = proto_.lr_policy();
  const bool has_end = policy == "cosine" || policy == "poly" || policy == "plateau";
  if (has_end && proto_.min_lr() > proto_.base_lr()) {
    solver_.Fail("min_lr", Join("min_lr is ", proto_.min_lr(), " and base_lr ", proto_.base_lr(),
                                ", but lr_policy '", policy,
                                "' decays from base_lr to min_lr, so min_lr must not be larger"));
  }
}

void SolverChecks::CheckLength() const {
  const int warmup = proto_.warmup_iter(), rampup = proto_.rampup_interval();
  const int end = std::max(warmup, rampup), length = proto_.max_iter();
  const std::string& policy = proto_.lr_policy();
  if (policy == "cosine" && end >= length) {
    solver_.Fail("max_iter", Join("max_iter is ", length, ", but lr_policy 'cosine' ",
                                  "decays from the end of the warm-up, iteration ", end,
                                  ", to max_iter; give more iterations or a shorter warm-up"));
  }
  if (end > length) {
    const char* const field = warmup > 0 ? "warmup_iter" : "rampup_interval";
    solver_.Fail(field, Join(field, " is ", end, ", but max_iter is ", length,
                             ", so the run would end before its warm-up; give more iterations or "
                             "a shorter warm-up"));
  }
  if (policy != "plateau") return;
  for (int i = 0; i < proto_.plateau_winsize_size(); ++i) {
    if (proto_.plateau_winsize(i) <= length) continue;
    solver_.Fail(
        "plateau_winsize",
        Join("plateau_winsize is ", proto_.plateau_winsize(i), ", but max_iter is ", length,
             ", so the run would end before this step of the learning rate; give "
             "more iterations or a smaller window"),
        i);
  }
}

void SolverChecks::CheckMomentum() const {
  for (const char* name : {"momentum", "momentum2"}) InUnit(name);
  if (proto_.momentum_policy() == "poly") InUnit("max_momentum");
  if (proto_.momentum_policy() == "opt" && proto_.has_max_momentum()) InUnit("max_momentum");
  InUnit("ema_decay");
  CheckMomentumSteps();
}

void SolverChecks::CheckMomentumSteps() const {
  const auto& steps = proto_.momentum_stepvalue();
  const auto& values = proto_.momentum_value();
  if (proto_.momentum_policy() != "multistep") {
    for (const char* name : {"momentum_stepvalue", "momentum_value"}) {
      if (Given(name)) {
        solver_.Fail(name, Join(name, " is given without momentum_policy: \"multistep\""), 0);
      }
    }
    return;
  }
  if (steps.empty() || steps.size() != values.size()) {
    solver_.Fail("momentum_policy",
                 Join("momentum_policy 'multistep' needs as many momentum_stepvalue as "
                      "momentum_value, at least one of each: there are ",
                      steps.size(), " and ", values.size()));
  }
  for (int i = 0; i < steps.size(); ++i) {
    if (steps[i] <= (i == 0 ? 0 : steps[i - 1])) {
      solver_.Fail(
          "momentum_stepvalue",
          Join("momentum_stepvalue is ", steps[i], "; the values must be at least 1 and increase"),
          i);
    }
    if (!(values[i] >= 0 && values[i] < 1)) {
      solver_.Fail("momentum_value",
                   Join("momentum_value is ", values[i], "; it must be at least 0 and below 1"), i);
    }
  }
}

}  // namespace trainer
