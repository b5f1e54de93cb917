#include <glog/logging.h>

#include <limits>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/inference/predict/feature_extraction.h"
#include "trainer/inference/predict/prediction_target.h"
#include "trainer/run/device.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

// Writes the values of blobs for each batch into an HDF5 file or databases.
class Features final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags_ = &flags;
    flags.BindWords(&options_.images, std::numeric_limits<size_t>::max());
    flags.Bind(&target_.model.file, "model", "FILE", "the net");
    DeclareWeights(flags, &target_.weights);
    flags.Bind(
        &target_.run, "run", "DIR",
        "the folder of a run, instead of --model and --weights: its net with an Input layer, "
        "and the weights of its best test");
    flags.Bind(&shape_, "shape", "C,H,W",
               "for --run, if the data of the run is not there: the shape of an image");
    flags.BindList(&options_.blobs, "blobs", "LIST", "names of blobs, separated by commas")
        .Required();
    flags
        .BindList(
            &options_.out, "out", "PATHS",
            "the HDF5 or .npz file, or one database or .npy file per blob, separated by commas")
        .Required();
    flags.BindChoice<std::string>(&options_.backend, "backend", "hdf5|lmdb|leveldb",
                                  {{"hdf5", "HDF5"}, {"lmdb", "LMDB"}, {"leveldb", "LEVELDB"}},
                                  "the format to write");
    flags.Bind(&options_.replace, "force", "", "replace a file that already exists");
    flags.Bind(&options_.input, "input", "FILE", "HDF5, .npz or .npy file that fills Input layers");
    flags.Bind(&options_.random, "random", "", "fill Input layers with random numbers");
    DeclareSeed(flags, &seed_, "seed of the random numbers of --random");
    DeclareIterations(flags, &options_.iterations);
    DeclarePhase(flags, &phase_);
    DeclareNetChanges(flags, &target_.model);
    DeclareDevice(flags, &device_);
    DeclareDbLock(flags, &db_lock_);
    DeclareImages(flags, &options_.image_flags);
  }

  int Run() override {
    SetDbLock(db_lock_);
    static_cast<void>(ChooseDevice(device_));  // before the files are read
    const PredictionTarget target = FindTarget();
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(device_, target.net));
    InferenceNet net(target.net, *device,
                     {.state = target.state, .memory = BufferReuse::kSeparate});
    options_.weights = target.weights;
    options_.seed = static_cast<uint64_t>(seed_);
    const int passes = ExtractFeatures(net, options_);
    LOG(INFO) << EscapeControl(Join("Wrote ", JoinList(options_.out, ","), ": ",
                                    JoinList(options_.blobs), " of ", Counted(passes, "batch")));
    return 0;
  }

 private:
  // Unlike ResolvePredictionTarget, takes a net that reads its own data, and a net without weights.
  PredictionTarget FindTarget() {
    target_.verb = "features";
    const bool has_files =
        !options_.images.empty() || !options_.image_flags.list.empty() || !options_.input.empty();
    if (has_files && flags_->values().IsGiven("iterations")) {
      throw Error(ErrorCode::kUsage,
                  "--iterations is for --random and for nets that read their own data; images and "
                  "--input are read to their end");
    }
    if (!shape_.empty()) target_.shape = ParseItemShape(shape_);
    if (!target_.run.empty()) {
      if (phase_ == caffe::TEST) return ResolvePredictionTarget(target_);
      throw Error(ErrorCode::kUsage, "--phase is for --model; the net of --run is its TEST net");
    }
    if (target_.model.file.empty()) {
      throw Error(ErrorCode::kUsage, "'trainer features' needs --model=FILE, or --run=DIR");
    }
    if (target_.shape) {
      throw Error(ErrorCode::kUsage, "--shape is for --run; the net of --model has its own sizes");
    }
    RequireFiles(target_.weights);
    PredictionTarget target;
    target.weights = target_.weights;
    target.net = LoadModel(target_.model, &target.weights);
    target.state = MakeNetState(phase_, target_.model.state);
    return target;
  }

  const FlagSet* flags_ = nullptr;
  PredictionTargetOptions target_;
  FeatureOptions options_;
  std::string shape_;
  int seed_ = 1;
  caffe::Phase phase_ = caffe::TEST;
  DeviceOptions device_;
  DbLock db_lock_ = DbLock::kAuto;
};

const RegisterVerb<Features> kFeatures("features");

}  // namespace
}  // namespace trainer
