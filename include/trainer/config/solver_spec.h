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

// What `trainer train --level --stage` add to the training net's state.
struct StateFlags {
  int level = 0;
  std::vector<std::string> stages;
};

// A net that a solver asks for: which file, in which state.
struct NetUse {
  const NetSpec* net = nullptr;  // never null but after LoadSolver with a list of errors
  caffe::NetState state;         // solver default + net's own + train_state / test_state + flags
  std::string description;  // as Caffe logs it: "net file: F", "train_net file: F", "net_param"
};

// The test_iter of a test that computes each record of its data once. LoadSolver gives it to tests
// without a test_iter.
inline constexpr int kExactPass = 0;

// A solver file and all the nets it names. Movable, keeps everything its NetUses point at.
struct SolverSpec {
  caffe::SolverParameter proto;
  std::string file;
  std::unique_ptr<ParsedText> text;
  std::deque<NetSpec> nets;  // each file once, though several uses may share it
  NetUse train;
  std::vector<NetUse> tests;

  // The line of a solver field, or of the file when it was left out.
  SourceRef Where(std::string_view field, int index = -1) const;
  // Throws kConfig at that line: "solver.prototxt:3:1: message".
  [[noreturn]] void Fail(std::string_view field, const std::string& message, int index = -1) const;
};

// Reads a solver and its nets (paths: the working folder first, then the solver's), fills
// snapshot_prefix by Caffe's rule, and checks every field that can be checked without building a
// net: exactly one source of the training net, counts of test_iter / test_state / test_interval,
// max_iter, iter_size, average_loss, known lr_policy with the fields it needs, finite base_lr >= 0,
// stepvalue increasing, regularization_type, snapshot_format. The changes of `overrides` (null:
// none) are made before the checks. With a list, `errors` takes those of the checks and of the
// nets, so that one call tells all; a NetUse whose net cannot be read then has none. What makes the
// solver itself unreadable is thrown all the same.
SolverSpec LoadSolver(const std::string& path, const StateFlags& flags = {},
                      Overrides* overrides = nullptr, ErrorCollector* errors = nullptr);

}  // namespace trainer
