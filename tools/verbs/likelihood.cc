#include <iostream>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/generative/parzen_likelihood.h"
#include "trainer/inference/generative/rbm_likelihood.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

// Estimates the log-likelihood of data under an RBM, by annealed importance sampling, or under
// samples, by a Parzen window.
class Likelihood final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    DeclareModel(flags, &net_, "the net, with its data");
    DeclareWeights(flags, &weights_);
    flags.Bind(&rbm_.layer, "layer", "NAME", "which RBM layer, if the net has several");
    DeclareIterations(flags, &rbm_.iterations);
    flags.Bind(&rbm_.chains, "chains", "N", "number of chains of annealed importance sampling")
        .Range(2, 1000000);
    flags
        .Bind(&rbm_.steps, "steps", "N",
              "number of distributions between the base and the model; fewer are faster and less "
              "exact")
        .Range(1, 100000000);
    flags.Bind(&rbm_.exact, "exact", "",
               "compute log Z as the sum over all states; for at most 22 units");
    flags.Bind(&parzen_.samples, "samples", "FILE", "HDF5 file of samples for a Parzen window");
    flags.Bind(&parzen_.blob, "blob", "NAME", "blob with the data to compare with --samples");
    flags.Bind(&parzen_.sigma, "sigma", "X", "width of the Parzen window");
    flags.Bind(&parzen_.validation, "validation", "N", "number of batches that choose the width")
        .Range(1);
    DeclareSeed(flags, &seed_, "seed of the random numbers");
    DeclareJson(flags, &json_);
    DeclarePhase(flags, &phase_);
    DeclareNetChanges(flags, &net_);
    DeclareDevice(flags, &device_);
  }

  int Run() override {
    static_cast<void>(ChooseDevice(device_));  // before the files are read
    const bool is_rbm = parzen_.samples.empty();
    UsePack(&net_, &weights_);
    if (is_rbm && weights_.empty()) {
      throw Error(ErrorCode::kUsage,
                  "--weights is missing: give the weights of the RBM layer, or --samples for a "
                  "Parzen window");
    }
    RequireFiles(weights_);
    const NetSpec spec = LoadNet(net_);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(device_, spec));
    rbm_.seed = static_cast<uint64_t>(seed_);
    parzen_.iterations = rbm_.iterations;
    InferenceNet net(spec, *device,
                     {.state = MakeNetState(phase_, net_.state),
                      .memory = BufferReuse::kSeparate,
                      .seed = rbm_.seed});
    if (!weights_.empty()) net.LoadWeights(weights_);
    if (is_rbm) {
      Print(MeasureRbmLikelihood(net.net(), rbm_));
    } else {
      Print(MeasureParzenLikelihood(net.net(), parzen_));
    }
    return 0;
  }

 private:
  template <class Result>
  void Print(const Result& result) const {
    std::cout << (json_ ? ToJson(result).ToString() : ToText(result));
  }

  NetSource net_;
  std::vector<std::string> weights_;
  RbmLikelihoodOptions rbm_;
  ParzenLikelihoodOptions parzen_;
  int seed_ = 1;
  bool json_ = false;
  caffe::Phase phase_ = caffe::TEST;
  DeviceOptions device_;
};

const RegisterVerb<Likelihood> kLikelihood("likelihood");

}  // namespace
}  // namespace trainer
