#include <algorithm>
#include <vector>

#include "common/picture_weights.h"
#include "trainer/backend/layout.h"
#include "trainer/backend/map.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/config/named_file.h"
#include "trainer/layers/file_writer.h"
#include "trainer/layers/layer.h"
#include "trainer/layers/param_start.h"
#include "trainer/layers/writes_at_snapshots.h"

namespace trainer {
namespace {

constexpr char kParameterParam[] = "parameter_param";

struct AddGradient {
  const float* dy;
  float* dweight;
  PlainOrder order;
  HD void operator()(int64_t i) const { dweight[i] += dy[order.Memory(i)]; }
};

class Parameter final : public Layer,
                        public StartsParams,
                        public FileWriter,
                        public WritesAtSnapshots {
 public:
  explicit Parameter(const LayerSpec& spec) : spec_(spec), picture_(spec) {
    const caffe::ParameterParameter& param = spec.proto().parameter_param();
    if (!param.has_shape() && !picture_.has_start()) {
      spec.Fail("parameter_param has no shape; give the size of the weight");
    }
  }

  void Allow(OutputFiles files) override {
    const std::string path = picture_.FileOf(0);
    writes_ = !path.empty() && (files == OutputFiles::kNew || files == OutputFiles::kResume);
    if (path.empty() || files == OutputFiles::kNone) return;
    if (!IsDirectory(FolderOf(path))) {
      Refuse(Join("the folder of '", path, "' does not exist; create it (mkdir -p)"));
    }
    if (files != OutputFiles::kResume && !picture_.NamesIteration() && Exists(path)) {
      Refuse(Join("'", path,
                  "' is there already, and a net replaces no file of another run; move "
                  "it away, or give another name"));
    }
  }

  void Describe(DescribeContext& plan) override {
    plan.Param("weight", picture_.shape(), spec_.proto().parameter_param().filler());
    plan.Out(0, picture_.shape());
  }
  bool Start(int, std::span<float> values) const override {
    if (!picture_.has_start()) return false;
    std::ranges::copy(picture_.start(), values.begin());
    return true;
  }
  void Forward(const RunContext& run) override {
    CopyFromPlain(run.device(), run.Param(0), run.Out(0));
  }
  void Backward(const RunContext& run) override {
    if (run.GradParam(0) == nullptr) return;
    const ConstTensor& dy = run.GradOut(0);
    ForEach(run.device(), dy.Count(),
            AddGradient{dy.f32(), run.GradParam(0), PlainOrder(dy.shape)});
  }

  void WriteAtSnapshot(const RunContext& run, int iter) override {
    if (!writes_) return;
    std::vector<float> weights(static_cast<size_t>(picture_.shape().Count()));
    run.device().CopyToHost(weights.data(), run.Param(0), weights.size() * sizeof(float));
    picture_.Write(weights, picture_.FileOf(iter));
  }

 private:
  [[noreturn]] void Refuse(const std::string& message) const {
    ThrowAtField(spec_, kParameterParam, "picture", Error(ErrorCode::kCannotCreate, message));
  }

  LayerSpec spec_;
  PictureWeights picture_;
  bool writes_ = false;
};

const RegisterLayer<Parameter> kParameter(
    "Parameter", {.text = "A learned weight as an output, for other layers to use as an input.\n"
                          "No bottom; the top has parameter_param.shape. The weight starts at 0, "
                          "or as `filler` says, or as the picture `image`, resized to the shape "
                          "where one is given, less mean_value. `picture` is written at every "
                          "snapshot: the weight plus mean_value as a PNG.",
                  .param = kParameterParam,
                  .arity = {.min_in = 0, .max_in = 0}});

}  // namespace
}  // namespace trainer
