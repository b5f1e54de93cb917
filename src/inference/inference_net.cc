#include "trainer/inference/inference_net.h"

#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/net/load_weights.h"

namespace trainer {

// Builds either the nets of a test or a single net. Both use the parameters of this object.
InferenceNet::InferenceNet(const NetSpec& spec, const Device& device,
                           const InferenceOptions& options)
    : spec_(spec), params_(device) {
  NetOptions net_options;
  net_options.state = options.state;
  net_options.memory = options.memory;
  net_options.seed = options.seed;
  net_options.log = options.log;
  net_options.output_files = options.output_files;
  if (options.test_batches) {
    test_ = std::make_unique<TestNets>(spec, net_options, device, params_, *options.test_batches);
  } else {
    net_ = std::make_unique<Net>(spec, net_options, device, params_);
  }
}

// Loads the weights into only one net, because the nets of a test share their parameters.
std::vector<std::string> InferenceNet::LoadWeights(std::span<const std::string> files) {
  Net* const nets[] = {&net()};
  WeightLoader loading(nets);
  for (const std::string& file : files) loading.Copy(ReadModel(file, loading.net_file()), file);
  loading.Finish();
  return loading.Missing();
}

void InferenceNet::LoadAllWeights(std::span<const std::string> files) {
  const std::vector<std::string> missing = LoadWeights(files);
  if (missing.empty()) return;
  throw Error(ErrorCode::kData, {JoinList(files)},
              EscapeControl(Join("the weights of ", Counted(missing.size(), "layer"),
                                 " of the net are missing: ", FirstNames(missing),
                                 "; use the net that these weights were trained with, as "
                                 "'trainer deploy' makes it of the training net")));
}

void RequireBlobs(const Net& net, const std::string& flag, const std::vector<std::string>& blobs) {
  std::set<std::string> names;
  for (const Node& node : net.graph().nodes) {
    if (node.spec.type() == "Split" || node.spec.type() == "Cast") continue;
    names.insert(node.spec.proto().top().begin(), node.spec.proto().top().end());
  }
  const std::vector<std::string> known(names.begin(), names.end());
  for (const std::string& blob : blobs) {
    if (names.contains(blob)) continue;
    throw Error(ErrorCode::kUsage,
                Join("--", flag, ": the net has no blob '", EscapeControl(blob), "'.",
                     DidYouMean(blob, known), " Its blobs are ", EscapeControl(JoinList(known))));
  }
}

}  // namespace trainer
