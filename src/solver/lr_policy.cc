#include "trainer/solver/lr_policy.h"

#include <cmath>
#include <functional>
#include <map>

namespace trainer {
namespace {

struct Schedule {
  const caffe::SolverParameter& solver;
  int iter, current_step;
};

using Formula = std::function<double(const Schedule&)>;

double Step(const Schedule& s) { return std::pow(s.solver.gamma(), s.iter / s.solver.stepsize()); }
double Exp(const Schedule& s) { return std::pow(s.solver.gamma(), s.iter); }
double Inv(const Schedule& s) {
  return std::pow(1 + s.solver.gamma() * static_cast<double>(s.iter), -s.solver.power());
}
double MultiStep(const Schedule& s) { return std::pow(s.solver.gamma(), s.current_step); }
double Poly(const Schedule& s) {
  return std::pow(1 - static_cast<double>(s.iter) / s.solver.max_iter(), s.solver.power());
}
double Sigmoid(const Schedule& s) {
  return 1 / (1 + std::exp(-s.solver.gamma() * static_cast<double>(s.iter - s.solver.stepsize())));
}

const std::map<std::string, Formula>& Formulas() {
  static const std::map<std::string, Formula> formulas = {
      {"fixed", [](const Schedule&) { return 1.0; }},
      {"step", Step},
      {"exp", Exp},
      {"inv", Inv},
      {"multistep", MultiStep},
      {"poly", Poly},
      {"sigmoid", Sigmoid},
  };
  return formulas;
}

}  // namespace

float LearningRate(const caffe::SolverParameter& solver, int iter, int current_step) {
  const Formula& formula = Formulas().at(solver.lr_policy());
  return static_cast<float>(solver.base_lr() * formula({solver, iter, current_step}));
}

bool TakesStep(const caffe::SolverParameter& solver, int iter, int current_step) {
  return solver.lr_policy() == "multistep" && current_step < solver.stepvalue_size() &&
         iter >= solver.stepvalue(current_step);
}

}  // namespace trainer
