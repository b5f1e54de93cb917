#pragma once
// What `trainer test` tests: the files of --model and --weights, or the run of --run.

#include <optional>
#include <string>
#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

struct TestSubject {
  std::optional<NetSpec> model;      // of --model
  std::optional<SolverSpec> solver;  // of the run
  caffe::NetState state;
  std::vector<std::string> weights;
  int batches = kExactPass;  // of --iterations
  std::string file;          // of the net or the solver, for messages
  std::string folder;        // of the run, or ""

  const NetSpec& net() const { return model ? *model : *solver->tests[0].net; }
};

// Throws kUsage where flags are missing or contradict each other; kNoInput for a folder that is not
// of a run and a run without a snapshot; kConfig for a run without a test net; as RequireFiles for
// weights, as LoadNet and LoadSolver.
TestSubject SubjectOf(const Flags& flags);

}  // namespace trainer
