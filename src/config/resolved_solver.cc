#include "trainer/config/resolved_solver.h"

#include <google/protobuf/text_format.h>

namespace trainer {
namespace {

// Returns the net's own fields and its layers as one message.
caffe::NetParameter WholeNet(const NetSpec& net) {
  caffe::NetParameter whole = net.proto;
  for (const LayerSpec& layer : net.layers) *whole.add_layer() = layer.proto();
  return whole;
}

}  // namespace

caffe::SolverParameter ResolvedSolver(const SolverSpec& spec) {
  caffe::SolverParameter solver = spec.proto;
  const int test_nets = solver.test_net_param_size() + solver.test_net_size();
  const bool shared = solver.has_net() || solver.has_net_param();
  solver.clear_net();
  solver.clear_net_param();
  solver.clear_train_net();
  solver.clear_train_net_param();
  solver.clear_test_net();
  solver.clear_test_net_param();
  *(shared ? solver.mutable_net_param() : solver.mutable_train_net_param()) =
      WholeNet(*spec.train.net);
  for (int i = 0; i < test_nets; ++i) {
    *solver.add_test_net_param() = WholeNet(*spec.tests[static_cast<size_t>(i)].net);
  }
  return solver;
}

std::string ResolvedText(const SolverSpec& spec) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(ResolvedSolver(spec), &text);
  return text;
}

}  // namespace trainer
