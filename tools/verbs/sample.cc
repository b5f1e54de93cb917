#include <glog/logging.h>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/generative/sample_sheet.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

// Draws samples from an RBM or another generative net, and writes them as a sheet of images.
class Sample final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    DeclareModel(flags, &net_);
    DeclareWeights(flags, &weights_);
    flags.Bind(&out_, "out", "FILE", "the sheet of samples to write (.png)").Required();
    flags.Bind(&samples_file_, "samples", "FILE", "also write all samples to this HDF5 file");
    flags.Bind(&options_.count, "count", "N", "how many samples").Range(1, 10000000);
    flags.Bind(&options_.steps, "steps", "N", "Gibbs steps, or passes, before the first sample")
        .Range(1);
    flags.Bind(&options_.every, "every", "N", "steps between batches of samples").Range(1);
    flags.Bind(&options_.start, "start", "random|zeros|data", "where the chains start")
        .Choices("random|zeros|data");
    flags.Bind(&options_.blob, "blob", "NAME",
               "blob with the samples, for a net without RBM layers");
    flags.BindList(&options_.feed, "feed", "LIST",
                   "OUT:IN pairs of blobs to copy after each pass, separated by commas");
    flags.Bind(&shape_, "shape", "C,H,W", "shape of a sample as an image");
    flags.Bind(&replace_, "force", "", "replace files that already exist");
    DeclareSeed(flags, &seed_, "seed of the random numbers");
    DeclarePhase(flags, &phase_);
    DeclareNetChanges(flags, &net_);
    DeclareDevice(flags, &device_);
  }

  int Run() override {
    static_cast<void>(ChooseDevice(device_));  // before the files are read
    RequireFiles(weights_);
    RefuseToReplace(out_, replace_);
    if (!LowerCase(out_).ends_with(".png")) {
      throw Error(ErrorCode::kUsage,
                  Join("--out=", EscapeControl(out_),
                       ": the sheet is a PNG file; give a name that ends in .png"));
    }
    const NetSpec spec = LoadModel(net_, &weights_);
    if (weights_.empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer sample' needs --weights=FILES, or a pack as --model");
    }
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(device_, spec));
    options_.seed = static_cast<uint64_t>(seed_);
    InferenceNet net(spec, *device,
                     {.state = MakeNetState(phase_, net_.state),
                      .memory = BufferReuse::kSeparate,
                      .seed = options_.seed});
    net.LoadWeights(weights_);
    const std::unique_ptr<Sampler> sampler = MakeSampler(net.net(), options_);
    static_cast<void>(SampleImageDims(sampler->dims(), shape_));  // before the many steps
    const SampleSet samples = DrawSamples(*sampler, options_);
    if (!samples_file_.empty()) WriteSamples(samples_file_, samples, replace_);
    WriteSampleSheet(out_, samples, shape_);
    LOG(INFO) << EscapeControl(Join("Wrote ", out_, ": ", samples.dims[0], " samples"));
    return 0;
  }

 private:
  NetSource net_;
  std::vector<std::string> weights_;
  std::string out_, samples_file_, shape_;
  SamplingOptions options_;
  bool replace_ = false;
  int seed_ = 1;
  caffe::Phase phase_ = caffe::TEST;
  DeviceOptions device_;
};

const RegisterVerb<Sample> kSample("sample");

}  // namespace
}  // namespace trainer
