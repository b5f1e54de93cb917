#include "trainer/config/epochs.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "checks/solver_checks.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// A time in iterations and the same time in epochs.
struct TimeFields {
  const FieldDescriptor *iterations, *epochs;
};

const std::array<TimeFields, 4>& AllTimeFields() {
  const auto find = [](const char* name) {
    return caffe::SolverParameter::descriptor()->FindFieldByName(name);
  };
  static const std::array<TimeFields, 4> fields = {{
      {find("max_iter"), find("max_epoch")},
      {find("test_interval"), find("test_interval_epoch")},
      {find("snapshot"), find("snapshot_epoch")},
      {find("stepvalue"), find("stepvalue_epoch")},
  }};
  return fields;
}

bool IsGiven(const caffe::SolverParameter& solver, const FieldDescriptor* field) {
  const Reflection& reflection = *solver.GetReflection();
  return field->is_repeated() ? reflection.FieldSize(solver, field) > 0
                              : reflection.HasField(solver, field);
}

// Replaces one time in epochs by iterations. Returns "max_epoch 5 is max_iter 315".
std::string ResolveTime(const TimeFields& time, int64_t epoch_iterations, SolverSpec* spec) {
  caffe::SolverParameter& solver = spec->proto;
  const Reflection& reflection = *solver.GetReflection();
  const bool repeated = time.epochs->is_repeated();
  const int count = repeated ? reflection.FieldSize(solver, time.epochs) : 1;
  std::string epochs, iterations;
  int before = -1;
  for (int i = 0; i < count; ++i) {
    const double value = repeated ? reflection.GetRepeatedFloat(solver, time.epochs, i)
                                  : reflection.GetFloat(solver, time.epochs);
    const double exact = std::round(value * static_cast<double>(epoch_iterations));
    if (exact > std::numeric_limits<int32_t>::max()) {
      spec->Fail(time.epochs->name(),
                 Join(time.epochs->name(), " is ", value, ", which is ", exact,
                      " iterations; a run has at most ", std::numeric_limits<int32_t>::max()),
                 i);
    }
    const int at = std::max(static_cast<int>(exact), repeated ? 0 : 1);
    if (at <= before) {
      spec->Fail(
          time.epochs->name(),
          Join(time.epochs->name(), " ", value, " is iteration ", at,
               ", and so is the value before it: an epoch has ", epoch_iterations,
               epoch_iterations == 1 ? " iteration" : " iterations", "; remove one of the values"),
          i);
    }
    before = at;
    epochs += Join(i == 0 ? "" : ", ", value);
    iterations += Join(i == 0 ? "" : ", ", at);
    if (repeated) {
      reflection.AddInt32(&solver, time.iterations, at);
    } else {
      reflection.SetInt32(&solver, time.iterations, at);
    }
  }
  reflection.ClearField(&solver, time.epochs);
  return Join(time.epochs->name(), " ", epochs, " is ", time.iterations->name(), " ", iterations);
}

}  // namespace

bool UsesEpochs(const caffe::SolverParameter& solver) {
  return std::ranges::any_of(AllTimeFields(),
                             [&](const TimeFields& time) { return IsGiven(solver, time.epochs); });
}

bool HasTestInterval(const caffe::SolverParameter& solver) {
  return solver.test_interval() > 0 || solver.has_test_interval_epoch();
}

void DropReplacedTimes(const caffe::SolverParameter& before, caffe::SolverParameter* solver) {
  for (const TimeFields& time : AllTimeFields()) {
    if (!IsGiven(*solver, time.iterations) || !IsGiven(*solver, time.epochs)) continue;
    const bool had_iterations = IsGiven(before, time.iterations);
    if (had_iterations == IsGiven(before, time.epochs)) continue;
    solver->GetReflection()->ClearField(solver, had_iterations ? time.iterations : time.epochs);
  }
}

std::string ResolveEpochs(const EpochSize& epoch, SolverSpec* spec) {
  const int64_t iterations = epoch.Iterations();
  std::string times;
  for (const TimeFields& time : AllTimeFields()) {
    if (!IsGiven(spec->proto, time.epochs)) continue;
    times += (times.empty() ? ": " : ", ") + ResolveTime(time, iterations, spec);
  }
  SolverChecks(*spec).CheckWarmup();
  return Join("an epoch is ", iterations, iterations == 1 ? " iteration (" : " iterations (",
              epoch.records, " records, ", epoch.per_iteration, " per iteration)", times);
}

void RestoreEpochs(const caffe::SolverParameter& written, SolverSpec* spec) {
  const Reflection& reflection = *written.GetReflection();
  for (const TimeFields& time : AllTimeFields()) {
    if (!IsGiven(written, time.epochs)) continue;
    reflection.ClearField(&spec->proto, time.iterations);
    reflection.ClearField(&spec->proto, time.epochs);
    if (!time.epochs->is_repeated()) {
      reflection.SetFloat(&spec->proto, time.epochs, reflection.GetFloat(written, time.epochs));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(written, time.epochs); ++i) {
      reflection.AddFloat(&spec->proto, time.epochs,
                          reflection.GetRepeatedFloat(written, time.epochs, i));
    }
  }
}

}  // namespace trainer
