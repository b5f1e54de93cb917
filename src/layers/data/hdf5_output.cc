#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "data/numbered_path.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/hdf5/appender.h"
#include "trainer/layers/layer.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {
namespace {

constexpr char kHdf5OutputParam[] = "hdf5_output_param";
constexpr std::array<const char*, 2> kDatasets = {"data", "label"};

// Returns the shape as Caffe writes it: four axes, the last ones of length 1.
std::array<int64_t, 4> FourAxes(const Shape& shape) {
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  for (int axis = 0; axis < shape.Rank(); ++axis) dims[static_cast<size_t>(axis)] = shape[axis];
  return dims;
}

// Reserves a file for one layer of this process, so that no other layer writes it: `good` is false
// if another claim on the same absolute path exists. The destructor releases it.
class Claim {
 public:
  explicit Claim(const std::string& path) : path_(AbsolutePath(path)) {
    const std::lock_guard lock(Mutex());
    good_ = Taken().insert(path_).second;
  }
  ~Claim() {
    const std::lock_guard lock(Mutex());
    if (good_) Taken().erase(path_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  bool good() const { return good_; }

 private:
  static std::mutex& Mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::set<std::string>& Taken() {
    static std::set<std::string> taken;
    return taken;
  }

  std::string path_;
  bool good_ = false;
};

// Appends the rows of its two inputs to the datasets 'data' and 'label' of an HDF5 file. Nothing is
// written by reevaluations and by virtual ranks other than 0.
class Hdf5Output final : public Layer {
 public:
  // Throws kConfig without a file_name, and what ClaimFile throws.
  Hdf5Output(const LayerSpec& spec, const LayerEnv& env)
      : spec_(spec), path_(spec.proto().hdf5_output_param().file_name()) {
    if (path_.empty())
      spec.FailIn(kHdf5OutputParam, "file_name",
                  "file_name is missing; give the path of the file to write");
    ClaimFile(env.output_files);
  }

  // Throws kConfig for an input without axes or with more than 4, and for different numbers of
  // rows.
  void Setup(SetupContext& ctx) override {
    ctx.RunsOnHost();
    ctx.WritesFiles();
    int64_t most = 0;
    for (int i = 0; i < ctx.NumInputs(); ++i) {
      const Shape& shape = ctx.Input(i);
      if (shape.Rank() < 1 || shape.Rank() > 4) {
        spec_.Fail(
            "bottom",
            Join("it has ", shape.Rank(), " axes, but only 1 to 4 can be written: reshape it"), i);
      }
      most = std::max(most, shape.Count());
      ctx.NotDifferentiable(i);
    }
    if (ctx.Input(0)[0] != ctx.Input(1)[0]) {
      spec_.Fail(Join("data and label differ in their number of rows: ", ctx.Input(0).ToString(),
                      " and ", ctx.Input(1).ToString()));
    }
    plain_.resize(static_cast<size_t>(most));
    // enough for the widest storage type
    memory_.resize(static_cast<size_t>(most) * sizeof(float));
  }

  // The first pass creates the file, so that a net that never runs does not create it.
  void Forward(const RunContext& run) override {
    if (!writes_ || run.is_reevaluation() || run.virtual_rank() > 0) return;  // only rank 0 writes
    if (!file_) file_ = std::make_unique<Hdf5Appender>(path_, "", Hdf5Creation::kNew);
    for (int i = 0; i < run.NumInputs(); ++i) {
      ReadNchw(run, i);
      file_->Append(kDatasets[static_cast<size_t>(i)], FourAxes(run.Input(i).shape),
                    {plain_.data(), static_cast<size_t>(run.Input(i).Count())});
    }
    file_->Flush();
  }

 private:
  // Decides whether the layer writes, and reserves the file. Throws kCannotCreate if its folder
  // does not exist or the file exists (a resumed run takes another name instead), and kConfig if
  // another layer writes it.
  void ClaimFile(OutputFiles files) {
    writes_ = files == OutputFiles::kCreate || files == OutputFiles::kResume;
    if (files == OutputFiles::kDisabled) return;
    if (!IsDirectory(FolderOf(path_))) {
      Refuse(Join("the folder of '", path_, "' does not exist; create it (mkdir -p)"));
    }
    claim_ = std::make_unique<Claim>(path_);
    if (!claim_->good()) {
      spec_.FailIn(
          kHdf5OutputParam, "file_name",
          Join(
              "another layer of this run writes '", path_,
              "'; give each layer its own file, or give this layer an include rule for one phase"));
    }
    if (!Exists(path_)) return;
    if (files != OutputFiles::kResume) {
      Refuse(Join("'", path_, "' already exists and is not overwritten; move it away, or ",
                  "give another name with --set layer[", spec_.name(), "].", kHdf5OutputParam,
                  ".file_name=..."));
    }
    ChooseFreePath();
  }

  // Throws kCannotCreate at the line of file_name.
  [[noreturn]] void Refuse(const std::string& message) const {
    ThrowAtField(spec_, kHdf5OutputParam, "file_name", Error(ErrorCode::kCannotCreate, message));
  }

  // Chooses a new name, because the file of the stopped run already has the rows before the
  // snapshot, and some after it.
  void ChooseFreePath() {
    const std::string before = path_;
    for (int number = 2; Exists(path_) || !claim_->good(); ++number) {
      path_ = NumberedPath(before, number);
      claim_.reset();
      claim_ = std::make_unique<Claim>(path_);
    }
    LOG(INFO) << EscapeControl(Join("Layer '", spec_.name(), "': '", before,
                                    "' already exists; the resumed run writes its rows to '", path_,
                                    "'"));
  }

  // Copies input i to plain_, as floats in the order (N, C, H, W).
  void ReadNchw(const RunContext& run, int i) {
    const ConstTensor& x = run.Input(i);
    run.device().CopyToHost(memory_.data(), x.data, x.Bytes());
    const NchwOrder order(x.shape);
    DispatchDtype(x.dtype, [&](auto tag) {
      const auto* numbers = reinterpret_cast<const typename decltype(tag)::Type*>(memory_.data());
      for (int64_t at = 0; at < x.Count(); ++at) {
        plain_[static_cast<size_t>(order.Plain(at))] = Load(numbers[at]);
      }
    });
  }

  LayerSpec spec_;
  std::string path_;
  bool writes_ = false;
  std::unique_ptr<Claim> claim_;
  std::vector<std::byte> memory_;
  std::vector<float> plain_;
  std::unique_ptr<Hdf5Appender> file_;
};

const RegisterLayer<Hdf5Output> kHdf5Output(
    "HDF5Output",
    {.text = "Writes its two inputs to an HDF5 file.\n"
             "bottom 0 as dataset 'data', bottom 1 as 'label', both with four axes (N, C, H, W); "
             "missing axes have length 1. The first pass creates the file, and each later pass "
             "appends its rows. If the file already exists, the run stops with an error before the "
             "first pass; a resumed run writes to NAME_2.h5, NAME_3.h5, ... instead. Only 'trainer "
             "train' and 'trainer test' write the file.",
     .param = kHdf5OutputParam,
     .arity = {.min_in = 2, .max_in = 2, .min_out = 0, .max_out = 0}});

}  // namespace
}  // namespace trainer
