#include <glog/logging.h>

#include "shared_flags.h"
#include "trainer/backend/device.h"
#include "trainer/base/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/net/load_weights.h"
#include "trainer/net/net.h"
#include "trainer/net/output_counts.h"
#include "verb.h"

namespace trainer {
namespace {

// Every element of every output, summed over batches.
class Scores {
 public:
  void Add(const Net& net, int batch) {
    size_t element = 0, count = 0;
    for (const NetOutput& output : net.outputs()) count += output.value.Count();
    if (batch > 0) RequireEqualCounts(sums_.size(), count);
    for (const NetOutput& output : net.outputs()) {
      host_.resize(static_cast<size_t>(output.value.Count()));
      net.ReadPlain(output.value, host_);
      for (const float value : host_) {
        if (batch == 0) sums_.push_back({output.name, 0, output.loss_weight});
        sums_[element++].sum += value;
        LOG(INFO) << Join("Batch ", batch, ", ", output.name, " = ", value);
      }
    }
  }

  void Log(int batches) const {
    for (const Sum& sum : sums_) {
      const auto mean = static_cast<float>(sum.sum / batches);
      const std::string loss = sum.loss_weight == 0 ? ""
                                                    : Join(" (* ", sum.loss_weight, " = ",
                                                           sum.loss_weight * mean, " loss)");
      LOG(INFO) << Join(sum.name, " = ", mean, loss);
    }
  }

 private:
  struct Sum {
    std::string name;
    double sum = 0;
    float loss_weight = 0;
  };
  std::vector<Sum> sums_;
  std::vector<float> host_;
};

class Test final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "score trained weights on a net's test data",
        .usage = "trainer test --model=FILE --weights=FILES [flags]",
        .text =
            "Runs the TEST phase of the net and logs each batch's outputs and, at the end, "
            "their means.",
        .examples =
            "trainer test --model=models/lenet/train_test.prototxt \\\n"
            "    --iterations=40 --weights=run/lenet/lenet_iter_2000.caffemodel",
        .flags = {{.name = "model", .value = "FILE", .help = "the net", .required = true},
                  {.name = "weights",
                   .value = "FILES",
                   .help = ".caffemodel files, with commas between",
                   .required = true},
                  IterationsFlag(),
                  LevelFlag(),
                  StageFlag(),
                  SetFlag(),
                  GpuFlag(),
                  MemoryFlag()},
    };
  }

  int Run(const Flags& flags) override {
    RefuseGpu(flags);
    const NetSpec spec = ModelOf(flags);
    LOG(INFO) << "Use CPU.";
    const std::unique_ptr<Device> device = MakeCpuDevice();
    ParamStore params(*device);
    NetOptions options;
    options.state = NetStateOf(flags, caffe::TEST);
    options.memory = ParseMemoryMode(flags);
    Net net(spec, options, *device, params);
    Net* const nets[] = {&net};
    WeightLoading loading(nets);
    for (const std::string& file : flags.List("weights")) loading.Copy(ReadModel(file), file);
    loading.Finish();
    const int batches = flags.Whole("iterations");
    LOG(INFO) << "Running for " << batches << " iterations.";
    Scores scores;
    double loss = 0;
    for (int batch = 0; batch < batches; ++batch) {
      loss += net.Forward();
      scores.Add(net, batch);
    }
    LOG(INFO) << Join("Loss: ", static_cast<float>(loss / batches));
    scores.Log(batches);
    return 0;
  }
};

const RegisterVerb<Test> kTest("test");

}  // namespace
}  // namespace trainer
