#include <glog/logging.h>

#include <limits>

#include "flag_groups.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/inference/predict/feature_extraction.h"
#include "trainer/run/device.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

// Writes the values of blobs for each batch into an HDF5 file or databases.
class Features final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&options_.images, std::numeric_limits<size_t>::max());
    DeclareModel(flags, &net_);
    DeclareWeights(flags, &options_.weights);
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
    DeclareNetChanges(flags, &net_);
    DeclareDevice(flags, &device_);
    DeclareDbLock(flags, &db_lock_);
    DeclareImages(flags, &options_.image_flags);
  }

  int Run() override {
    SetDbLock(db_lock_);
    static_cast<void>(ChooseDevice(device_));  // before the files are read
    RequireFiles(options_.weights);
    const NetSpec spec = LoadModel(net_, &options_.weights);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(device_, spec));
    InferenceNet net(spec, *device,
                     {.state = MakeNetState(phase_, net_.state), .memory = BufferReuse::kSeparate});
    options_.seed = static_cast<uint64_t>(seed_);
    const int passes = ExtractFeatures(net, options_);
    LOG(INFO) << EscapeControl(Join("Wrote ", JoinList(options_.out, ","), ": ",
                                    JoinList(options_.blobs), " of ", Counted(passes, "batch")));
    return 0;
  }

 private:
  NetSource net_;
  FeatureOptions options_;
  int seed_ = 1;
  caffe::Phase phase_ = caffe::TEST;
  DeviceOptions device_;
  DbLock db_lock_ = DbLock::kAuto;
};

const RegisterVerb<Features> kFeatures("features");

}  // namespace
}  // namespace trainer
