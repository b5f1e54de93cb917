#include "common/checks.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr char kParam[] = "concat_param";

class Concat final : public Layer {
 public:
  explicit Concat(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    const Shape& first = plan.In(0);
    const int axis = ReadAxis(first);
    int64_t length = 0;
    lengths_.clear();
    for (int i = 0; i < plan.NumIn(); ++i) {
      CheckInput(plan, i, axis);
      lengths_.push_back(plan.In(i)[axis]);
      length += lengths_.back();
    }
    const Shape out = first.With(axis, length);
    rows_ = AxisRows(out, axis);
    if (plan.NumIn() == 1) return plan.OutIsView(0, 0, out);
    plan.Out(0, out, plan.InType(0));
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    int64_t start = 0;
    for (int i = 0; run.NumIn() > 1 && i < run.NumIn(); ++i) {
      const int64_t block = Block(i);
      CopyDesc part = BlockCopy(SizeOf(run.Out(0).dtype), Blocks(), block, block, Step());
      part.written_bytes = static_cast<int64_t>(run.Out(0).Bytes());
      run.device().Copy(part, run.In(i).data, At(run.Out(0).As<std::byte>(), run, start));
      start += block;
    }
  }

  void Backward(const RunContext& run) override {
    int64_t start = 0;
    for (int i = 0; run.NumIn() > 1 && i < run.NumIn(); ++i) {
      const int64_t block = Block(i);
      if (run.WantsGradIn(i)) {
        run.device().Copy(BlockCopy(SizeOf(run.Out(0).dtype), Blocks(), block, Step(), block),
                          At(run.GradOut(0).As<std::byte>(), run, start), run.GradIn(i).data);
      }
      start += block;
    }
  }

 private:
  int ReadAxis(const Shape& shape) const {
    const caffe::ConcatParameter& param = spec_.proto().concat_param();
    if (!param.has_concat_dim()) return AxisIn(spec_, kParam, "axis", param.axis(), shape);
    if (param.has_axis()) {
      spec_.FailIn(kParam, "concat_dim", "axis and concat_dim are both given; keep axis");
    }
    const auto axis = static_cast<int>(std::min<uint32_t>(param.concat_dim(), INT32_MAX));
    return AxisIn(spec_, kParam, "concat_dim", axis, shape);
  }

  void CheckInput(const DescribeContext& plan, int i, int axis) const {
    const Shape &first = plan.In(0), &other = plan.In(i);
    const bool fits = other.Rank() == first.Rank() && other.With(axis, 1) == first.With(axis, 1) &&
                      plan.InType(i) == plan.InType(0);
    if (fits) return;
    spec_.Fail("bottom",
               Join("bottom '", spec_.proto().bottom(i), "' has shape ", Dims(other),
                    " and bottom '", spec_.proto().bottom(0), "' has ", Dims(first),
                    "; to be joined along axis ", axis, " they must agree in all others"),
               i);
  }

  // An input's part is one block per index of the axes before.
  int64_t Blocks() const { return rows_.count / rows_.inner; }
  int64_t Block(int i) const { return lengths_[static_cast<size_t>(i)] * rows_.inner; }
  int64_t Step() const { return rows_.length * rows_.inner; }
  template <class Byte>
  static Byte* At(Byte* data, const RunContext& run, int64_t element) {
    return data + element * static_cast<int64_t>(SizeOf(run.Out(0).dtype));
  }

  LayerSpec spec_;
  Rows rows_;
  std::vector<int64_t> lengths_;
};

const RegisterLayer<Concat> kConcat(
    "Concat", {.text = "Concatenates its inputs along `axis` (default 1).\n"
                       "All other axes must agree. The top's axis is as long as the bottoms' "
                       "together.",
               .param = kParam,
               .arity = {.min_in = 1, .max_in = -1},
               .storage = Storage::kFollows});

}  // namespace
}  // namespace trainer
