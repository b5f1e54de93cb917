#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "plain_order.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

constexpr char kParam[] = "hdf5_output_param";
constexpr std::array<const char*, 2> kDatasets = {"data", "label"};

// As Caffe writes them: four axes, ones behind.
std::array<int64_t, 4> FourAxes(const Shape& shape) {
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  for (int axis = 0; axis < shape.Rank(); ++axis) dims[static_cast<size_t>(axis)] = shape[axis];
  return dims;
}

class Hdf5Output final : public Layer {
 public:
  explicit Hdf5Output(const LayerSpec& spec) : spec_(spec) {
    const std::string& path = spec.proto().hdf5_output_param().file_name();
    if (path.empty()) spec.FailIn(kParam, "file_name", "file_name, the file to write, is missing");
    if (!IsDirectory(FolderOf(path))) {
      throw Error(ErrorCode::kCannotCreate, spec.WhereIn(kParam, "file_name"),
                  Join("the folder of '", path, "' does not exist; create it (mkdir -p)"));
    }
  }

  void Plan(PlanContext& plan) override {
    int64_t most = 0;
    for (int i = 0; i < plan.NumIn(); ++i) {
      const Shape& shape = plan.In(i);
      if (shape.Rank() < 1 || shape.Rank() > 4) {
        spec_.Fail("bottom",
                   Join("it has ", shape.Rank(), " axes; 1 to 4 can be written: reshape it"), i);
      }
      most = std::max(most, shape.Count());
      plan.NoGradient(i);
    }
    if (plan.In(0)[0] != plan.In(1)[0]) {
      spec_.Fail(Join("data and label differ in their number of rows: ", plan.In(0).ToString(),
                      " and ", plan.In(1).ToString()));
    }
    plain_.resize(static_cast<size_t>(most));
    memory_.resize(static_cast<size_t>(most) * sizeof(float));  // no storage type is wider
  }

  // The file is made by the first pass, so that a net that is only looked at destroys nothing.
  void Forward(RunContext& run) override {
    if (!file_) {
      file_ = std::make_unique<Hdf5Appender>(spec_.proto().hdf5_output_param().file_name());
    }
    for (int i = 0; i < run.NumIn(); ++i) {
      ReadPlain(run, i);
      file_->Append(kDatasets[static_cast<size_t>(i)], FourAxes(run.In(i).shape),
                    {plain_.data(), static_cast<size_t>(run.In(i).Count())});
    }
    file_->Flush();
  }

 private:
  // Input i into plain_, as floats in the order (N, C, H, W).
  void ReadPlain(RunContext& run, int i) {
    const ConstTensor& x = run.In(i);
    run.device().CopyToHost(memory_.data(), x.data, x.Bytes());
    const PlainOrder order(x.shape);
    WithType(x.dtype, [&](auto tag) {
      const auto* numbers = reinterpret_cast<const typename decltype(tag)::Type*>(memory_.data());
      for (int64_t at = 0; at < x.Count(); ++at) {
        plain_[static_cast<size_t>(order.Plain(at))] = Load(numbers[at]);
      }
    });
  }

  LayerSpec spec_;
  std::vector<std::byte> memory_;
  std::vector<float> plain_;
  std::unique_ptr<Hdf5Appender> file_;
};

const RegisterLayer<Hdf5Output> kHdf5Output(
    "HDF5Output",
    {.text = "Writes its two inputs to an HDF5 file.\n"
             "bottom 0 as dataset 'data', bottom 1 as 'label', both of four axes (N, C, H, W) with "
             "ones for those an input lacks. The first pass makes the file, in place of an older "
             "one; each later pass adds its rows behind the others.",
     .param = kParam,
     .arity = {.min_in = 2, .max_in = 2, .min_out = 0, .max_out = 0}});

}  // namespace
}  // namespace trainer
