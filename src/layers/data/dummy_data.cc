#include "shared/blob_shapes.h"
#include "shared/host_upload.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/filler.h"

namespace trainer {
namespace {

constexpr char kDummyDataParam[] = "dummy_data_param";

// Outputs made by fillers. The host draws the numbers of each pass and copies them to the device; a
// constant is written once.
class DummyData final : public Layer {
 public:
  explicit DummyData(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    ctx.RunsOnHost();
    const caffe::DummyDataParameter& param = spec_.proto().dummy_data_param();
    if (!param.data_filler().empty()) {
      CheckPerTop(spec_, kDummyDataParam, "data_filler", param.data_filler_size());
    }
    outputs_.clear();
    host_ = {};
    size_t most = 0;
    for (int i = 0; i < ctx.NumOutputs(); ++i) {
      Output& out = outputs_.emplace_back();
      out.shape = TopShape(i);
      if (!param.data_filler().empty()) {
        out.filler = param.data_filler(param.data_filler_size() == 1 ? 0 : i);
      }
      ctx.Output(i, out.shape);
      ctx.OutputPersists(i);
      out.values = host_.Add<float>(out.shape.Count());
      most = std::max(most, static_cast<size_t>(out.shape.Count()));
      float first = 0;  // drawn only to refuse a bad filler now
      Fill(out.filler, out.shape, PhiloxKey{}, 0, spec_, {&first, 1});
    }
    ctx.Scratch(most * sizeof(float));
  }

  void Prepare(PrepareContext& ctx) override { upload_.Prepare(ctx.device(), host_.Bytes()); }

  void Forward(const RunContext& run) override {
    if (AllAreWritten(run)) return;
    const std::span<std::byte> host = upload_.Host();
    for (int i = 0; i < run.NumOutputs(); ++i) {
      Output& out = outputs_[static_cast<size_t>(i)];
      if (out.IsWritten(run.Output(i).data)) continue;
      FillOutput(out, i, run.rng_key(), run.pass(), host);
      void* const scratch = run.Scratch().data();
      upload_.Send(scratch, out.values.offset,
                   static_cast<size_t>(out.shape.Count()) * sizeof(float));
      CopyFromNchw(run.device(), scratch, run.Output(i));
      if (out.filler.type() == "constant") out.written.push_back(run.Output(i).data);
    }
  }

 private:
  // One top. A constant is written once to each address at which a pass asks for it.
  struct Output {
    Shape shape;
    caffe::FillerParameter filler;
    ScratchRegion<float> values;       // row-major, in host memory
    std::vector<const void*> written;  // outputs that already hold the constant
    bool IsWritten(const void* memory) const {
      return std::ranges::find(written, memory) != written.end();
    }
  };

  // Returns true if all outputs already hold their constants, so that the pass has nothing to do.
  bool AllAreWritten(const RunContext& run) const {
    bool all = true;
    for (int i = 0; i < run.NumOutputs(); ++i) {
      all = all && outputs_[static_cast<size_t>(i)].IsWritten(run.Output(i).data);
    }
    return all;
  }

  // Fills the part of `host` that belongs to top i. Each top has its own random stream.
  void FillOutput(const Output& out, int i, PhiloxKey key, uint32_t pass,
                  std::span<std::byte> host) const {
    key.stream += static_cast<uint32_t>(i);
    Fill(out.filler, out.shape, key, pass, spec_,
         {out.values.At(host), static_cast<size_t>(out.shape.Count())});
  }

  // Returns the shape of top i, from `shape`, or from num, channels, height and width. Throws
  // kConfig if neither is given, or both.
  Shape TopShape(int i) const {
    const caffe::DummyDataParameter& param = spec_.proto().dummy_data_param();
    if (!param.shape().empty()) {
      if (!param.num().empty()) {
        spec_.FailIn(kDummyDataParam, "num", "shape and num are both given; keep shape", 0);
      }
      CheckPerTop(spec_, kDummyDataParam, "shape", param.shape_size());
      const int at = param.shape_size() == 1 ? 0 : i;
      return ShapeOf(spec_, kDummyDataParam, "shape", param.shape(at), at);
    }
    if (param.num().empty()) spec_.Fail("dummy_data_param has no shape; give one, or one per top");
    return {ReadLegacyDim("num", param.num(), i), ReadLegacyDim("channels", param.channels(), i),
            ReadLegacyDim("height", param.height(), i), ReadLegacyDim("width", param.width(), i)};
  }

  // Returns the entry of top i in one of the fields num, channels, height and width. Throws kConfig
  // if the field is missing or 0.
  int64_t ReadLegacyDim(const char* field, const google::protobuf::RepeatedField<uint32_t>& values,
                        int i) const {
    if (values.empty())
      spec_.Fail(Join(field,
                      " is not given; write num, channels, height and "
                      "width, or shape"));
    CheckPerTop(spec_, kDummyDataParam, field, values.size());
    const uint32_t value = values[values.size() == 1 ? 0 : i];
    if (value < 1)
      spec_.FailIn(kDummyDataParam, field, Join(field, " is 0; it must be at least 1"), 0);
    return value;
  }

  LayerSpec spec_;
  std::vector<Output> outputs_;
  ScratchLayout host_;
  HostUpload upload_;
};

const RegisterLayer<DummyData> kDummyData(
    "DummyData",
    {.text = "Outputs made by fillers, for tests and for measuring speed.\n"
             "shape (or num, channels, height, width) and data_filler: one for all tops, or one "
             "per top. Without a filler, the tops are zero. A constant is set once; other fillers "
             "draw new numbers in every pass.",
     .param = "dummy_data_param",
     .arity = {.min_in = 0, .max_in = 0, .min_out = 1, .max_out = -1}});

}  // namespace
}  // namespace trainer
