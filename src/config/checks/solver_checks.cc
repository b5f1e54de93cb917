#include "checks/solver_checks.h"

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lr_policies.h"
#include "trainer/base/text/duration.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/storage.h"

namespace trainer {
namespace {

using google::protobuf::FieldDescriptor;

// Checks one solver. Each check throws at its first error.
class Checker {
 public:
  explicit Checker(const SolverSpec& solver) : solver_(solver), proto_(solver.proto) {}

  // Makes all checks. With a list of errors, later checks run after one that failed.
  void Run(ErrorCollector* errors) {
    using Check = void (Checker::*)() const;
    for (const Check check :
         {&Checker::CheckReals, &Checker::CheckIntegers, &Checker::CheckPolicy,
          &Checker::CheckSteps, &Checker::CheckNames, &Checker::CheckWarmup,
          &Checker::CheckMomentum, &Checker::CheckLarc, &Checker::CheckStorage,
          &Checker::CheckSnapshots, &Checker::CheckExchange, &Checker::WarnOfUnused}) {
      ErrorCollector::Try(errors, [&] { (this->*check)(); });
    }
  }

 private:
  static const FieldDescriptor* Field(const char* name) {
    return caffe::SolverParameter::descriptor()->FindFieldByName(name);
  }

  // Returns whether the solver gives a field, for a list at least one element.
  bool Given(const char* name) const {
    const FieldDescriptor* field = Field(name);
    const auto& reflection = *proto_.GetReflection();
    return field->is_repeated() ? reflection.FieldSize(proto_, field) > 0
                                : reflection.HasField(proto_, field);
  }

  // Throws if a field that every solver must give is missing. `value` is an example.
  void Needs(const char* name, const char* what, const char* value) const {
    if (Given(name)) return;
    solver_.Fail(name, Join(name, " is missing: ", what, "; write ", name, ": ", value,
                            ", or give --set ", name, "=", value));
  }

  // Checks that base_lr is given, and that floats such as base_lr, weight_decay and delta are 0 or
  // more.
  void CheckReals() const {
    Needs("base_lr", "the initial learning rate", "0.01");
    for (const char* name :
         {"base_lr", "weight_decay", "max_weight_decay", "weight_decay_power", "min_lr",
          "rampup_lr", "warmup_lr", "warmup_start_lr", "momentum_power", "delta"}) {
      const float value = proto_.GetReflection()->GetFloat(proto_, Field(name));
      if (value < 0) solver_.Fail(name, Join(name, " is ", value, "; it must be 0 or more"));
    }
  }

  // Throws if an int32 field, or its default, is below `least`.
  void AtLeast(const char* name, int least) const {
    const int value = proto_.GetReflection()->GetInt32(proto_, Field(name));
    if (value < least) {
      solver_.Fail(name, Join(name, " is ", value, "; it must be at least ", least));
    }
  }

  static constexpr unsigned kMostParts = 1 << 16;

  // Checks that max_iter is given, that integer fields such as iter_size and display are in their
  // ranges, and that virtual_ranks is a power of two.
  void CheckIntegers() const {
    Needs("max_iter", "the number of iterations to train for", "10000");
    for (const char* name : {"max_iter", "iter_size", "average_loss", "virtual_ranks"}) {
      AtLeast(name, 1);
    }
    const int parts = proto_.virtual_ranks();
    if (!std::has_single_bit(static_cast<unsigned>(parts))) {
      const unsigned less = std::bit_floor(static_cast<unsigned>(parts));
      solver_.Fail(
          "virtual_ranks",
          Join(
              "virtual_ranks is ", parts,
              "; it must be a power of two, because the parts of a batch are added in pairs: give ",
              less, less < kMostParts ? Join(" or ", 2 * less) : ""));
    }
    if (parts > static_cast<int>(kMostParts)) {
      solver_.Fail("virtual_ranks",
                   Join("virtual_ranks is ", parts, "; it must be at most ", kMostParts));
    }
    constexpr int kMostLosses = 10000000;  // which are kept in memory
    if (proto_.average_loss() > kMostLosses) {
      solver_.Fail("average_loss", Join("average_loss is ", proto_.average_loss(),
                                        "; it must be at most ", kMostLosses));
    }
    for (const char* name :
         {"display", "snapshot", "test_interval", "device_id", "rampup_interval", "warmup_iter"}) {
      AtLeast(name, 0);
    }
    for (int i = 0; i < proto_.test_iter_size(); ++i) {
      if (proto_.test_iter(i) < 0) {
        solver_.Fail("test_iter",
                     Join("test_iter is ", proto_.test_iter(i),
                          "; it must be at least 1, or 0 for one exact pass over the test data"),
                     i);
      }
    }
  }

  // Checks that lr_policy is given and known, and that the solver has the fields that the policy
  // needs.
  void CheckPolicy() const {
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
    if (policy->first != "sigmoid" && proto_.gamma() < 0) {
      solver_.Fail("gamma", Join("gamma is ", proto_.gamma(), "; lr_policy '", policy->first,
                                 "' needs 0 or more"));
    }
  }

  // Throws if the solver lacks a field of the policy. The message says what the policy does and
  // what to write.
  void RequireFieldsOf(const std::string& name, const LrPolicy& policy) const {
    std::vector<std::string> missing, lines;
    for (const PolicyField& field : policy.needs) {
      if (Given(field.name)) continue;
      missing.emplace_back(field.name);
      lines.push_back(Join(field.name, ": ", field.example));
    }
    if (missing.empty()) return;
    // A solver that names one policy and gives the field of the other may mean either of them.
    const char* const other = name == "step" && Given("stepvalue")       ? "multistep"
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

  // Checks that stepvalue starts at 0 or more and increases.
  void CheckSteps() const {
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

  // Throws with the nearest name if a text field has a value that is not known.
  void OneOf(const char* field, const std::string& value,
             std::initializer_list<std::string> known) const {
    const std::vector<std::string> names(known);
    for (const std::string& name : names) {
      if (value == name) return;
    }
    solver_.Fail(field, Join("unknown ", field, " '", value, "'.", DidYouMean(value, names),
                             " It is one of ", JoinList(names)));
  }

  // Checks text fields: snapshot_prefix, and fields that choose by name. eval_type must be
  // "classification".
  void CheckNames() const {
    if (proto_.has_snapshot_prefix() && proto_.snapshot_prefix().empty()) {
      solver_.Fail("snapshot_prefix",
                   "snapshot_prefix is empty: give the start of the snapshots' names, such as "
                   "\"run/net\", or remove the line to name them after the solver");
    }
    const std::string& prefix = proto_.snapshot_prefix();
    if (EscapeControl(prefix) != prefix) {
      solver_.Fail("snapshot_prefix", Join("snapshot_prefix '", EscapeControl(prefix),
                                           "' has control characters; remove them, because "
                                           "terminals and scripts would obey them"));
    }
    OneOf("regularization_type", proto_.regularization_type(), {"L1", "L2"});
    OneOf("momentum_policy", proto_.momentum_policy(), {"fixed", "multistep", "opt", "poly"});
    OneOf("weight_decay_policy", proto_.weight_decay_policy(), {"fixed", "poly"});
    OneOf("larc_policy", proto_.larc_policy(), {"clip", "scale"});
    if (proto_.eval_type() != "classification") {
      throw Error(ErrorCode::kUnavailable, solver_.Where("eval_type"),
                  Join("eval_type '", proto_.eval_type(), "' is not supported; tests report the ",
                       "outputs of the net (eval_type \"classification\")"));
    }
  }

  // Checks that only one kind of warm-up is given, and that a decay by cosine or poly has
  // iterations left after it and ends at or below base_lr.
  void CheckWarmup() const {
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
    const std::string& policy = proto_.lr_policy();
    if (policy == "cosine" && std::max(warmup, rampup) >= proto_.max_iter()) {
      solver_.Fail("max_iter",
                   Join("max_iter is ", proto_.max_iter(), ", but lr_policy 'cosine' ",
                        "decays from the end of the warm-up, iteration ", std::max(warmup, rampup),
                        ", to max_iter; give more iterations or a shorter warm-up"));
    }
    if ((policy == "cosine" || policy == "poly") && proto_.min_lr() > proto_.base_lr()) {
      solver_.Fail("min_lr", Join("min_lr is ", proto_.min_lr(), " and base_lr ", proto_.base_lr(),
                                  ", but lr_policy '", policy,
                                  "' decays from base_lr to min_lr, so min_lr must not be larger"));
    }
  }

  // Checks that the momentums and ema_decay are at least 0 and below 1, and the steps of
  // momentum_policy.
  void CheckMomentum() const {
    for (const char* name : {"momentum", "momentum2"}) InUnit(name);
    if (proto_.momentum_policy() == "poly") InUnit("max_momentum");
    if (proto_.momentum_policy() == "opt" && proto_.has_max_momentum()) InUnit("max_momentum");
    InUnit("ema_decay");
    CheckMomentumSteps();
  }

  // Checks that momentum_stepvalue and momentum_value are as many and that the steps increase;
  // without the policy "multistep", that neither is given.
  void CheckMomentumSteps() const {
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
        solver_.Fail("momentum_stepvalue",
                     Join("momentum_stepvalue is ", steps[i],
                          "; the values must be at least 1 and increase"),
                     i);
      }
      if (!(values[i] >= 0 && values[i] < 1)) {
        solver_.Fail("momentum_value",
                     Join("momentum_value is ", values[i], "; it must be at least 0 and below 1"),
                     i);
      }
    }
  }

  // Throws unless a float field, or its default, is at least 0 and below 1.
  void InUnit(const char* name) const {
    const float value = proto_.GetReflection()->GetFloat(proto_, Field(name));
    if (value >= 0 && value < 1) return;
    solver_.Fail(name, Join(name, " is ", value, "; it must be at least 0 and below 1"));
  }

  // Checks larc_eta. Throws kUnavailable for larc_turbo.
  void CheckLarc() const {
    if (!proto_.larc()) return;
    if (!(proto_.larc_eta() > 0)) {
      solver_.Fail("larc_eta",
                   Join("larc_eta is ", proto_.larc_eta(), "; it must be above 0, e.g. 0.001"));
    }
    if (proto_.larc_turbo()) {
      throw Error(ErrorCode::kUnavailable, solver_.Where("larc_turbo"),
                  "larc_turbo is not supported, because a snapshot cannot store its averages; "
                  "remove the line to train with larc only");
    }
  }

  // Checks default_forward_type and the loss scale of training with small types.
  void CheckStorage() const {
    const std::string field = "default_forward_type";
    const std::string fault = StorageFault(field, proto_.default_forward_type());
    if (proto_.has_default_forward_type() && !fault.empty()) solver_.Fail(field, fault);
    if (!(proto_.loss_scale() >= 0 && std::isfinite(proto_.loss_scale()))) {
      solver_.Fail(
          "loss_scale",
          Join("loss_scale is ", proto_.loss_scale(),
               "; it must be a factor above 0, such as 1024, or 0 to choose it during training"));
    }
    AtLeast("loss_scale_window", 1);
  }

  // Checks when snapshots are written and which are kept, and that something uses best_output.
  void CheckSnapshots() const {
    const std::string& every = proto_.snapshot_every();
    const std::optional<std::chrono::seconds> time = ParseDuration(every);
    if (proto_.has_snapshot_every() && (!time || time->count() < 1)) {
      solver_.Fail("snapshot_every", Join("snapshot_every is '", EscapeControl(every),
                                          "'; it must be a time of at least one second, ",
                                          "such as \"90s\", \"30m\", \"2h\" or \"1h30m\""));
    }
    AtLeast("keep_last", 0);
    AtLeast("keep_best", 0);
    AtLeast("patience", 0);
    if (proto_.has_best_output() && proto_.keep_best() == 0 && proto_.patience() == 0) {
      solver_.Fail("best_output",
                   "best_output is given without keep_best or patience, so nothing uses it: add "
                   "keep_best: 1 to keep the snapshot of the best test, add patience: 5 to stop "
                   "the run after 5 tests without improvement, or remove the line");
    }
  }

  // Checks the type in which gradients are sent. A smaller type than FLOAT excludes virtual_ranks.
  void CheckExchange() const {
    const caffe::Type type = proto_.exchange_type();
    if (type != caffe::FLOAT && type != caffe::FLOAT16 && type != caffe::BFLOAT16) {
      solver_.Fail("exchange_type", Join("exchange_type is ", caffe::Type_Name(type),
                                         "; gradients can be sent as FLOAT, FLOAT16 or BFLOAT16"));
    }
    if (type != caffe::FLOAT && proto_.virtual_ranks() > 1) {
      solver_.Fail("exchange_type",
                   Join("exchange_type is ", caffe::Type_Name(type), " and virtual_ranks ",
                        proto_.virtual_ranks(),
                        ": virtual_ranks makes the result independent of the number of ranks, but "
                        "rounding between machines depends on it; remove one of the two"));
    }
  }

  // Logs a warning for each given field that changes no weight and that nothing here reads.
  void WarnOfUnused() const {
    const auto warn = [&](bool set, const char* field, const char* why) {
      if (set) {
        LOG(WARNING) << solver_.Where(field).ToString() << ": " << field
                     << " has no effect: " << why;
      }
    };
    warn(proto_.test_and_snapshot_last_epochs() > 0, "test_and_snapshot_last_epochs",
         "test_interval and snapshot set the times of tests and snapshots");
    warn(proto_.solver_data_type() != caffe::FLOAT, "solver_data_type",
         "weights and the state of the update rule are of type FLOAT");
    warn(proto_.has_store_blobs_in_old_format() && !proto_.store_blobs_in_old_format(),
         "store_blobs_in_old_format",
         "weights are always written in this format, and every Caffe reads it");
    warn(proto_.has_engine(), "engine", "this program chooses the kernels itself");
    warn(proto_.plateau_winsize_size() > 0, "plateau_winsize", "no lr_policy uses it");
    warn(proto_.has_ap_version(), "ap_version", "only eval_type \"detection\" uses it");
    warn(proto_.show_per_class_result(), "show_per_class_result",
         "only eval_type \"detection\" uses it");
  }

  const SolverSpec& solver_;
  const caffe::SolverParameter& proto_;
};

}  // namespace

void CheckSolver(const SolverSpec& solver, ErrorCollector* errors) { Checker(solver).Run(errors); }

}  // namespace trainer
