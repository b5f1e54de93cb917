#include "small_run.h"

#include "trainer/base/text/text.h"

namespace trainer {

std::string SmallNet(int batch) {
  const std::string shapes =
      Join("dummy_data_param { shape { dim: ", batch, " dim: 6 } shape { dim: ", batch,
           " } data_filler { type: \"gaussian\" } data_filler { type: \"constant\" value: 1 } }");
  return Join(
      "name: \"small\" layer { name: \"data\" type: \"DummyData\" top: \"x\" top: \"label\" ",
      shapes, " }", R"(
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
        inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy"
        include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)");
}

SmallRun::SmallRun(const std::string& fields, const std::string& net, const SolverOptions& options,
                   const std::string& folder, std::unique_ptr<Device> on)
    : device(std::move(on)) {
  if (folder.empty()) own_folder = std::make_unique<TempFolder>();
  folder_path = folder.empty() ? own_folder->path() : folder;
  WriteText(PathOf("net.prototxt"), net);
  WriteText(PathOf("solver.prototxt"),
            Join("net: \"", PathOf("net.prototxt"), "\"\nrandom_seed: 3\nsnapshot_prefix: \"",
                 PathOf("s"), "\"\n", fields));
  spec = LoadSolver(PathOf("solver.prototxt"));
  solver = std::make_unique<Solver>(spec, options, *device, observer);
}

std::vector<float> WeightsOf(Solver& solver, const Device& device) {
  std::vector<float> all;
  for (const Param* param : solver.train_net().params()) {
    const std::vector<float> weight = WeightOf(device, *param);
    all.insert(all.end(), weight.begin(), weight.end());
  }
  return all;
}

}  // namespace trainer
