#include "flag_groups.h"

#include "trainer/checkpoint/model_file.h"

namespace trainer {

void DeclareState(FlagSet& flags, StateFlags* state) {
  flags.Bind(&state->level, "level", "N", "level of the net's state, for include and exclude rules")
      .Range(std::numeric_limits<int32_t>::min());
  flags.BindList(&state->stages, "stage", "LIST", "stages of the net's state, separated by commas");
}

void DeclarePhase(FlagSet& flags, caffe::Phase* phase) {
  flags.BindChoice(phase, "phase", "TRAIN|TEST", {{"TRAIN", caffe::TRAIN}, {"TEST", caffe::TEST}},
                   "which phase's net of --model");
}

void DeclareSet(FlagSet& flags, std::vector<std::string>* changes) {
  flags.Bind(changes, "set", "KEY=VALUE",
             "change a field of the solver or net; may be given several times. A solver field: "
             "base_lr=0.05. A layer's field: layer[conv1].convolution_param.num_output=64; of the "
             "TRAIN layer only: layer[data,TRAIN].data_param.batch_size=8. A list: "
             "stepvalue=[100,200]; one item: stepvalue[0]=50; an empty list: test_iter=");
}

void DeclareModel(FlagSet& flags, NetSource* net, std::string_view help) {
  flags.Bind(&net->file, "model", "FILE", help).Required();
}

void DeclareNetChanges(FlagSet& flags, NetSource* net) {
  DeclareState(flags, &net->state);
  DeclareSet(flags, &net->set);
}

void DeclareWeights(FlagSet& flags, std::vector<std::string>* files) {
  flags.BindList(files, "weights", "FILES",
                 "files of weights, separated by commas: .caffemodel, .h5, .safetensors, .npz");
  DeclareNames(flags);
}

void DeclareNames(FlagSet& flags) {
  TensorNamesFile().clear();  // another verb of this process may have set it
  flags.Bind(&TensorNamesFile(), "names", "FILE",
             "for .safetensors and .npz files of other programs: a table whose lines name a blob "
             "and its tensor, such as 'conv1.0 conv1.weight'; default: tensor_names.txt in the "
             "folder of the net");
}

void DeclareIterations(FlagSet& flags, int* iterations) {
  flags.Bind(iterations, "iterations", "N", "number of batches").Range(1);
}

void DeclareSeed(FlagSet& flags, int* seed, std::string_view help) {
  flags.Bind(seed, "seed", "N", help);
}

void DeclareJson(FlagSet& flags, bool* json) {
  flags.Bind(json, "json", "", "print JSON, for programs");
}

void DeclareForce(FlagSet& flags, bool* force) {
  flags.Bind(force, "force", "", "replace --out if it already exists");
}

void DeclareMemoryMode(FlagSet& flags, BufferReuse* mode) {
  flags
      .BindChoice(mode, "memory_mode", "MODE",
                  {{"shared", BufferReuse::kShared},
                   {"separate", BufferReuse::kSeparate},
                   {"poisoned", BufferReuse::kPoisoned}},
                  "shared, separate or poisoned")
      .Alias("memory")
      .Hidden();
}

void DeclareBadRecords(FlagSet& flags, std::string* text) {
  flags.Bind(text, "bad_records", "WHAT",
             "what to do with a record that cannot be decoded: stop the run with an error "
             "(stop), or log and skip up to N such records per epoch (skip=N)");
}

void DeclareDbLock(FlagSet& flags, DbLock* lock) {
  flags.BeginGroup("data");
  flags.BindChoice(lock, "db_lock", "auto|off", {{"auto", DbLock::kAuto}, {"off", DbLock::kOff}},
                   "auto: lock a database while it is open; if its lock file cannot be used, "
                   "open it without a lock (with a warning for an LMDB). off: open it without a "
                   "lock; then no program may write to it during the run");
  flags.BeginGroup("");
}

void DeclareImages(FlagSet& flags, ImageInputFlags* images) {
  flags.Bind(&images->list, "list", "FILE",
             "file with the paths of more images, one per line; -: the standard input");
  flags.Bind(&images->oversample, "oversample", "",
             "classify ten crops (corners and center, plain and mirrored) and average the scores");
  DeclarePreprocessing(flags, images);
}

void DeclarePreprocessing(FlagSet& flags, ImageInputFlags* images) {
  flags.Bind(&images->resize, "resize", "H,W",
             "resize images to this size, then crop the center to the size of the net's input; "
             "default: resize to the size of the input (with --oversample: to 256,256)");
  flags.Bind(&images->resize_short, "resize_short", "PIXELS",
             "resize the shorter side of images to this length and the other side in proportion, "
             "then crop the center");
  flags.Bind(&images->mean, "mean", "FILE",
             "binaryproto file with the mean image to subtract; if its size differs from the "
             "images, its channel means are subtracted");
  flags.Bind(&images->mean_value, "mean_value", "LIST",
             "number to subtract, or one number per channel: blue, green, red");
  flags.Bind(&images->raw_scale, "raw_scale", "X",
             "value of white before the mean is subtracted; 1 for nets trained on values from 0 "
             "to 1; default: 255");
  flags.Bind(&images->scale, "scale", "X",
             "factor applied after the mean is subtracted (scale of transform_param); default: 1");
}

void DeclareDevice(FlagSet& flags, DeviceOptions* device) {
  flags.BeginGroup("device and memory");
  flags.Bind(&device->gpu, "gpu", "ID",
             "compute on this GPU, such as 0; all: the only GPU. 'train' accepts several (0,1 or "
             "all) and starts one rank per GPU");
  flags.Bind(&device->tf32, "tf32", "",
             "use TF32 for f32 matrix products and convolutions (11 significant bits): faster on "
             "Ampere and newer GPUs");
  flags.Bind(&device->deterministic, "deterministic", "",
             "give bit-identical results in every run on a GPU; may be slower");
  flags.Bind(&device->gpu_cache, "gpu_cache", "FILE|off",
             "file that stores the fastest measured convolution algorithms for later runs and "
             "other processes (default: trainer/convolutions in your cache folder); off: measure "
             "again in each process");
  flags.BeginGroup("");
}

}  // namespace trainer
