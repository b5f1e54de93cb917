#include "checks/solver_checks.h"

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "trainer/base/text/duration.h"
#include "trainer/base/text/text.h"
#include "trainer/config/epochs.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/storage.h"

namespace trainer {
namespace {

using google::protobuf::FieldDescriptor;

constexpr unsigned kMostParts = 1 << 16;  // of virtual_ranks

// Returns the descriptor of a field of the solver.
const FieldDescriptor* Field(const char* name) {
  return caffe::SolverParameter::descriptor()->FindFieldByName(name);
}

}  // namespace

void SolverChecks::Run(ErrorCollector* errors) const {
  using Check = void (SolverChecks::*)() const;
  for (const Check check :
       {&SolverChecks::CheckReals, &SolverChecks::CheckIntegers, &SolverChecks::CheckPolicy,
        &SolverChecks::CheckSteps, &SolverChecks::CheckNames, &SolverChecks::CheckWarmup,
        &SolverChecks::CheckMomentum, &SolverChecks::CheckLarc, &SolverChecks::CheckStorage,
        &SolverChecks::CheckEpochs, &SolverChecks::CheckSnapshots, &SolverChecks::CheckTestMetrics,
        &SolverChecks::CheckExchange, &SolverChecks::CheckClipping, &SolverChecks::WarnOfUnused}) {
    ErrorCollector::Try(errors, [&] { (this->*check)(); });
  }
}

bool SolverChecks::Given(const char* name) const {
  const FieldDescriptor* field = Field(name);
  const auto& reflection = *proto_.GetReflection();
  return field->is_repeated() ? reflection.FieldSize(proto_, field) > 0
                              : reflection.HasField(proto_, field);
}

void SolverChecks::Needs(const char* name, const char* what, const char* value) const {
  if (Given(name)) return;
  solver_.Fail(name, Join(name, " is missing: ", what, "; write ", name, ": ", value,
                          ", or give --set ", name, "=", value));
}

void SolverChecks::AtLeast(const char* name, int least) const {
  const int value = proto_.GetReflection()->GetInt32(proto_, Field(name));
  if (value < least) {
    solver_.Fail(name, Join(name, " is ", value, "; it must be at least ", least));
  }
}

void SolverChecks::InUnit(const char* name) const {
  const float value = proto_.GetReflection()->GetFloat(proto_, Field(name));
  if (value >= 0 && value < 1) return;
  solver_.Fail(name, Join(name, " is ", value, "; it must be at least 0 and below 1"));
}

void SolverChecks::OneOf(const char* field, const std::string& value,
                         std::initializer_list<std::string> known) const {
  const std::vector<std::string> names(known);
  for (const std::string& name : names) {
    if (value == name) return;
  }
  solver_.Fail(field, Join("unknown ", field, " '", value, "'.", DidYouMean(value, names),
                           " It is one of ", JoinList(names)));
}

void SolverChecks::CheckReals() const {
  Needs("base_lr", "the initial learning rate", "0.01");
  for (const char* name :
       {"base_lr", "weight_decay", "max_weight_decay", "weight_decay_power", "min_lr", "rampup_lr",
        "warmup_lr", "warmup_start_lr", "momentum_power", "delta"}) {
    const float value = proto_.GetReflection()->GetFloat(proto_, Field(name));
    if (value < 0) solver_.Fail(name, Join(name, " is ", value, "; it must be 0 or more"));
  }
}

void SolverChecks::CheckIntegers() const {
  if (!proto_.has_max_epoch()) {
    Needs("max_iter", "the number of iterations to train for", "10000");
    AtLeast("max_iter", 1);
  }
  for (const char* name : {"iter_size", "average_loss", "virtual_ranks"}) {
    AtLeast(name, 1);
  }
  const int parts = proto_.virtual_ranks();
  if (!std::has_single_bit(static_cast<unsigned>(parts))) {
    const unsigned less = std::bit_floor(static_cast<unsigned>(parts));
    solver_.Fail(
        "virtual_ranks",
        Join("virtual_ranks is ", parts,
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
  for (const char* name : {"display", "snapshot", "test_interval", "device_id", "rampup_interval",
                           "warmup_iter", "unfreeze_at"}) {
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

void SolverChecks::CheckNames() const {
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

void SolverChecks::CheckLarc() const {
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

void SolverChecks::CheckStorage() const {
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

void SolverChecks::CheckSnapshots() const {
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
  if (proto_.min_delta() < 0) {
    solver_.Fail("min_delta", Join("min_delta is ", proto_.min_delta(), "; it must be 0 or more"));
  }
  if (proto_.min_delta() > 0 && proto_.patience() == 0) {
    solver_.Fail("min_delta",
                 "min_delta is given without patience, so nothing uses it: add patience: 5 to stop "
                 "the run after 5 tests without such an improvement, or remove the line");
  }
}

void SolverChecks::CheckTestMetrics() const {
  const bool has_tests = !proto_.test_iter().empty() || HasTestInterval(proto_);
  if (proto_.has_best_output() && !has_tests) {
    solver_.Fail("best_output",
                 "best_output is given without tests, so nothing uses it: add test_interval, or "
                 "remove the line");
  }
  if (proto_.test_metric_size() > 0 && !has_tests) {
    solver_.Fail("test_metric",
                 "test_metric is given without tests, so nothing computes it: add test_interval, "
                 "or remove the line",
                 0);
  }
  if (proto_.has_test_metric_layer() && proto_.test_metric_size() == 0) {
    solver_.Fail("test_metric_layer",
                 "test_metric_layer is given without test_metric, so nothing uses it: add "
                 "test_metric: \"macro_f1\", or remove the line");
  }
}

void SolverChecks::CheckExchange() const {
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

void SolverChecks::CheckClipping() const {
  const float value = proto_.clip_value();
  if (value == -1) return;
  if (!(value > 0)) {
    solver_.Fail("clip_value", Join("clip_value is ", value,
                                    "; it must be above 0, the largest size of a gradient, or -1 "
                                    "for none"));
  }
  if (proto_.clip_gradients() >= 0) {
    solver_.Fail("clip_value",
                 "clip_value and clip_gradients are both given: one limits each gradient, the "
                 "other the norm of all; remove one");
  }
}

void SolverChecks::WarnOfUnused() const {
  const auto warn = [&](bool set, const char* field, const char* why) {
    if (set) {
      LOG(WARNING) << solver_.Where(field).ToString() << ": " << field << " has no effect: " << why;
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
  warn(proto_.plateau_winsize_size() > 0 && proto_.lr_policy() != "plateau", "plateau_winsize",
       "only lr_policy \"plateau\" uses it");
  const bool decays = proto_.weight_decay() > 0 || proto_.max_weight_decay() > 0;
  warn(!proto_.decay_on_bias_and_norm() && !decays, "decay_on_bias_and_norm",
       "without weight_decay nothing decays");
  warn(proto_.has_ap_version(), "ap_version", "only eval_type \"detection\" uses it");
  warn(proto_.show_per_class_result(), "show_per_class_result",
       "only eval_type \"detection\" uses it");
}

}  // namespace trainer
