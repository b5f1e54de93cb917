#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <vector>

#include "data/numbered_path.h"
#include "data/weight_images.h"
#include "trainer/backend/loops/map.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

constexpr char kParameterParam[] = "parameter_param";

// Adds element i of dy to the weight's gradient, which is in row-major order.
struct AddGradient {
  const float* dy;
  float* dweight;
  NchwOrder order;
  HD void operator()(int64_t i) const { dweight[i] += dy[order.Memory(i)]; }
};

// A learned weight as a top: y = W. With `image` the weight starts as an image, and with `picture`
// each snapshot writes it as a PNG.
class Parameter final : public Layer {
 public:
  Parameter(const LayerSpec& spec, const LayerEnv& env) : spec_(spec), picture_(spec) {
    const caffe::ParameterParameter& param = spec.proto().parameter_param();
    if (!param.has_shape() && !picture_.has_start()) {
      spec.Fail("parameter_param has no shape; give the shape of the weight");
    }
    CheckPicture(env.output_files, env.snapshot_folder);
  }

  void Setup(SetupContext& ctx) override {
    ctx.WritesFiles();
    ctx.Param("weight", picture_.shape(), spec_.proto().parameter_param().filler(),
              {.initial = picture_.start()});
    ctx.Output(0, picture_.shape());
  }
  void Forward(const RunContext& run) override {
    CopyFromNchw(run.device(), run.Param(0), run.Output(0));
  }
  void Backward(const RunContext& run) override {
    if (run.GradParam(0) == nullptr) return;
    const ConstTensor& dy = run.GradOutput(0);
    ForEach(run.device(), dy.Count(), AddGradient{dy.f32(), run.GradParam(0), NchwOrder(dy.shape)});
  }

  void OnSnapshot(const RunContext& run, int iter) override {
    if (!writes_) return;
    std::vector<float> weights(static_cast<size_t>(picture_.shape().Count()));
    run.device().CopyToHost(weights.data(), run.Param(0), weights.size() * sizeof(float));
    picture_.Write(weights, PathFor(iter));
  }

 private:
  // Decides whether `picture` is written, and to which folder. Throws kCannotCreate if it names
  // another folder than the snapshots', or if a run that is not resumed would replace a file.
  void CheckPicture(OutputFiles files, const std::string& snapshot_folder) {
    if (!picture_.is_written() || files == OutputFiles::kDisabled || snapshot_folder.empty())
      return;
    const std::string& name = spec_.proto().parameter_param().picture();
    if (name.find('/') != std::string::npos &&
        AbsolutePath(FolderOf(name)) != AbsolutePath(snapshot_folder)) {
      Refuse(Join("picture is '", EscapeControl(name),
                  "', but images are written to the folder of the ",
                  "snapshots only: set picture: \"", EscapeControl(FileNameOf(name)),
                  "\", which is written to '", EscapeControl(snapshot_folder),
                  "', or change snapshot_prefix"));
    }
    folder_ = snapshot_folder;
    if (!IsDirectory(folder_)) {
      Refuse(Join("the folder of '", EscapeControl(picture_.FileOf(0)),
                  "' does not exist; create it (mkdir -p)"));
    }
    writes_ = files == OutputFiles::kCreate || files == OutputFiles::kResume;
    const std::string there = files == OutputFiles::kResume ? "" : picture_.FindIn(folder_);
    if (there.empty()) return;
    Refuse(Join("'", EscapeControl(there),
                "' already exists, and the run does not overwrite files of ",
                "another run; move it away, or give another name"));
  }

  // Throws kCannotCreate at the line of `picture`.
  [[noreturn]] void Refuse(const std::string& message) const {
    ThrowAtField(spec_, kParameterParam, "picture", Error(ErrorCode::kCannotCreate, message));
  }

  // Returns the file for iteration `iter`, the same in each call. Files of an earlier run or of
  // another layer are not replaced: the name then gets a number.
  std::string PathFor(int iter) {
    const std::string path = JoinPath(folder_, picture_.FileOf(iter));
    std::string& used = used_[path];
    if (!used.empty()) return used;
    used = path;
    for (int number = 2; Exists(used); ++number) used = NumberedPath(path, number);
    if (used != path) {
      LOG(INFO) << EscapeControl(Join("Layer '", spec_.name(), "': '", path, "' already exists; ",
                                      "the image is written to '", used, "'"));
    }
    return used;
  }

  LayerSpec spec_;
  WeightImage picture_;
  bool writes_ = false;
  std::string folder_;
  std::map<std::string, std::string> used_;  // the files of this run, by their requested names
};

const RegisterLayer<Parameter> kParameter(
    "Parameter", {.text = "A trained weight as an output that other layers can use as an input.\n"
                          "No bottom; the top has parameter_param.shape. The weight is initially "
                          "0, or set by `filler`, or the file `image` minus mean_value, resized "
                          "to the shape if one is given. `picture` is written with every "
                          "snapshot: the weight plus mean_value as a PNG. If the file already "
                          "exists, the run stops with an error before the first pass; a resumed "
                          "run writes to NAME_2.png, ... instead.",
                  .param = kParameterParam,
                  .arity = {.min_in = 0, .max_in = 0}});

}  // namespace
}  // namespace trainer
