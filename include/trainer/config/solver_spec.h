#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "solver.pb.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/text/prototxt.h"

namespace trainer {

// The level and stages that `trainer train --level --stage` adds to the training net's state.
struct StateFlags {
  int level = 0;
  std::vector<std::string> stages;
};

// A net that a solver asks for: its file and its state.
struct NetUse {
  const NetSpec* net = nullptr;  // null only after LoadSolver with a list of errors
  caffe::NetState state;         // solver default + net's own + train_state / test_state + flags
  std::string description;  // as Caffe logs it: "net file: F", "train_net file: F", "net_param"
};

// The test_iter of a test that computes each record of its data once. LoadSolver sets it for tests
// that have no test_iter.
inline constexpr int kExactPass = 0;

// A solver file and all the nets it names. It can be moved, and owns everything to which its
// NetUses point.
struct SolverSpec {
  caffe::SolverParameter proto;
  std::string file;
  std::unique_ptr<ParsedText> text;
  std::deque<NetSpec> nets;  // each file once, though several uses may share it
  NetUse train;
  std::vector<NetUse> tests;

  // Returns the line of a solver field, or the file if the field is not given.
  SourceRef Where(std::string_view field, int index = -1) const;
  // Throws kConfig at that line: "solver.prototxt:3:1: message".
  [[noreturn]] void Fail(std::string_view field, const std::string& message, int index = -1) const;
};

// Reads a solver and its nets (paths are relative to the working folder first, then to the
// solver's), sets snapshot_prefix by Caffe's rule, and checks every field that can be checked
// without building a net: exactly one source of the training net, counts of test_iter / test_state
// / test_interval, max_iter or max_epoch, iter_size, average_loss, known lr_policy with the fields
// it needs, finite base_lr >= 0, stepvalue increasing, regularization_type, snapshot_format. The
// changes of `overrides` (null: none) are made before the checks. If `errors` is given, the errors
// of the checks and of the nets are added to it, so that one call reports all of them; a NetUse
// then has a null net if its net cannot be read. Errors that make the solver itself unreadable are
// always thrown.
SolverSpec LoadSolver(const std::string& path, const StateFlags& flags = {},
                      Overrides* overrides = nullptr, ErrorCollector* errors = nullptr);

}  // namespace trainer
