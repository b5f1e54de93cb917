#include "upgrade/upgrade_solver.h"

#include "trainer/base/text/text.h"
#include "trainer/config/upgrade/upgrade.h"

namespace trainer {

Upgrades RewriteSolverType(SolverSpec* solver) {
  static constexpr const char* kNames[] = {"SGD",      "Nesterov", "AdaGrad", "RMSProp",
                                           "AdaDelta", "Adam",     "SAG"};
  caffe::SolverParameter& proto = solver->proto;
  if (!proto.has_solver_type()) return {};
  if (proto.has_type()) {
    solver->Fail("solver_type",
                 Join("solver_type is the old name of type, and both are given (type ", "in line ",
                      solver->Where("type").line, "); remove solver_type"));
  }
  proto.set_type(kNames[proto.solver_type()]);
  proto.clear_solver_type();
  return {
      .done = {Join(solver->file, ": rewrote the old solver_type as type: \"", proto.type(), "\"")},
      .warnings = {}};
}

Upgrades UpgradeSolver(SolverSpec* solver) {
  Upgrades upgrades = RewriteSolverType(solver);
  caffe::SolverParameter& proto = solver->proto;
  const auto upgrade = [&](const char* name, caffe::NetParameter* net, int index) {
    const auto* field = caffe::SolverParameter::descriptor()->FindFieldByName(name);
    const auto* tree = solver->text->tree.GetTreeForNested(field, index);
    upgrades.Append(UpgradeNet(net, solver->file, tree));
  };
  if (proto.has_net_param()) upgrade("net_param", proto.mutable_net_param(), -1);
  if (proto.has_train_net_param()) upgrade("train_net_param", proto.mutable_train_net_param(), -1);
  for (int i = 0; i < proto.test_net_param_size(); ++i) {
    upgrade("test_net_param", proto.mutable_test_net_param(i), i);
  }
  return upgrades;
}

}  // namespace trainer
