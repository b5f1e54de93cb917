#pragma once
// Provides a DigitsJob that the test's process loads.

#include <string>
#include <vector>

#include "support/digits_job.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/overrides.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Gives absolute paths to its data, because tests call the library from any working directory.
class DigitsRun : public DigitsJob {
 public:
  // The net has 784 * 10 + 10 weights, padded.
  static constexpr size_t kWeightBytes = 7856 * sizeof(float);

  DigitsRun() {
    for (const char* set : {"data/train_lmdb", "data/test_lmdb"}) {
      net = Edited(net, set, folder() / set);
    }
    solver = Edited(solver, "\"snap\"", "\"" + folder() / "snap" + "\"");
  }

  // Loads the solver of the files, with changes such as "base_lr=0.1".
  SolverSpec Load(const std::vector<std::string>& changes = {}) const {
    Write();
    Overrides overrides(changes);
    return LoadSolver(folder() / "solver.prototxt", {}, &overrides);
  }

  // Loads the net only.
  NetSpec LoadNet(const std::vector<std::string>& changes = {}) const {
    Overrides overrides(changes);
    return trainer::LoadNet(folder().Write("net.prototxt", net), &overrides);
  }
};

// Adds a chain of convolutions, whose outputs take most of the memory of the run.
inline std::string WithConvolutions(const std::string& net, int outputs) {
  std::string layers, from = "data";
  for (const char* name : {"c1", "c2", "c3", "c4", "c5", "c6"}) {
    layers +=
        Join("layer { name: \"", name, "\" type: \"Convolution\" bottom: \"", from, "\" top: \"",
             name, "\" convolution_param { num_output: ", outputs,
             " kernel_size: 3 pad: 1 weight_filler { type: \"xavier\" } } }\n", "layer { name: \"r",
             name, "\" type: \"ReLU\" bottom: \"", name, "\" top: \"", name, "\" }\n");
    from = name;
  }
  const std::string ip = "layer {\n  name: \"ip\"\n  type: \"InnerProduct\"\n  bottom: ";
  return Edited(net, ip + "\"data\"", layers + ip + "\"c6\"");
}

}  // namespace trainer
