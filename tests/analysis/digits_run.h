#pragma once
// A solver on 100 digits for training and 40 for tests, in a folder of its own.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/overrides.h"
#include "trainer/config/solver_spec.h"
#include "trainer/dataset/dataset.h"

namespace trainer {

// `text` with the first `from` replaced. The test fails if there is none.
inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "'" << from << "' is not in:\n" << text;
    return text;
  }
  return text.replace(at, from.size(), to);
}

class DigitsRun {
 public:
  // The weights of the net, 784 * 10 + 10, padded.
  static constexpr size_t kWeightBytes = 7856 * sizeof(float);

  explicit DigitsRun(const std::string& backend = "LMDB") {
    const DigitsPaths data =
        WriteDigits({.folder = folder_ / "data", .backend = backend, .train = 100, .test = 40});
    const auto layer = [&](const char* phase, const std::string& source) {
      return Join("layer { name: \"digits\" type: \"Data\" top: \"data\" top: \"label\"\n",
                  "  include { phase: ", phase, " } transform_param { scale: 0.00390625 }\n",
                  "  data_param { source: \"", source, "\" backend: ", backend,
                  " batch_size: 16 } }\n");
    };
    net = Join("name: \"small\"\n", layer("TRAIN", data.train), layer("TEST", data.test),
               R"(layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)");
    solver = Join("net: \"net.prototxt\" test_iter: 3 test_interval: 10 base_lr: 0.05\n",
                  "lr_policy: \"fixed\" momentum: 0.9 max_iter: 20 snapshot: 10 random_seed: 7\n",
                  "snapshot_prefix: \"", folder_ / "snap", "\" solver_mode: CPU\n");
  }

  // The solver of the files, with changes such as "base_lr=0.1".
  SolverSpec Load(const std::vector<std::string>& changes = {}) const {
    folder_.Write("net.prototxt", net);
    Overrides overrides(changes);
    return LoadSolver(folder_.Write("solver.prototxt", solver), {}, &overrides);
  }

  // Only the net.
  NetSpec LoadNet(const std::vector<std::string>& changes = {}) const {
    Overrides overrides(changes);
    return trainer::LoadNet(folder_.Write("net.prototxt", net), &overrides);
  }
  const TempFolder& folder() const { return folder_; }

  std::string net, solver;  // the texts of the files

 private:
  TempFolder folder_;
};

// Convolutions in a chain, whose outputs take most of the memory of the run.
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
  const std::string ip = R"(layer { name: "ip" type: "InnerProduct" bottom: ")";
  return Replaced(net, ip + "data\"", layers + ip + "c6\"");
}

}  // namespace trainer
