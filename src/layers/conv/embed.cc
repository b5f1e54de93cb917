#include <cmath>

#include "shared/checks.h"
#include "shared/index_checks.h"
#include "trainer/backend/loops/index_add.h"
#include "trainer/backend/loops/map_rows.h"
#include "trainer/base/text/text.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {
namespace {

constexpr char kEmbedParam[] = "embed_param";

// Computes the vector of one index: weight[index] + bias. Reports a bad index and sets its vector
// to NaN.
struct TakeVector {
  const float *index, *weight, *bias;
  float* y;
  NchwOrder in, out;
  LabelRule rule;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t c = rule.Read(index[in.Memory(row.index)]), step = out.Step();
    const float* const from = weight + (c < 0 ? 0 : c) * row.length;
    float* const to = y + out.Memory(row.index * row.length);
    row.ForEach([&](int64_t j) {
      const float added = bias == nullptr ? 0.0f : bias[j];
      to[j * step] = c < 0 ? NAN : from[j] + added;
    });
  }
};

// The gradients of the vectors and their indices, for IndexAdd.
struct VectorGradients {
  const float *index, *dy;
  NchwOrder in, out;
  LabelRule rule;
  int64_t columns;

  HD int64_t Index(int64_t row) const {
    return rule.Read(index[in.Step() == 1 ? row : in.Memory(row)]);
  }
  HD auto OfRow(int64_t row) const {
    const int64_t step = out.Step(), first = row * columns;
    return [from = dy + (step == 1 ? first : out.Memory(first)), step](int64_t column) {
      return from[column * step];
    };
  }
};

// A learned vector for each integer: y = W[x] + b. The indices get no gradient.
class Embed final : public Layer {
 public:
  explicit Embed(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    const caffe::EmbedParameter& param = spec_.proto().embed_param();
    RequireSize("num_output", param.has_num_output(), param.num_output(), "the length of a vector");
    RequireSize("input_dim", param.has_input_dim(), param.input_dim(), "the number of vectors");
    columns_ = param.num_output();
    rule_.classes = param.input_dim();
    const Shape& in = ctx.Input(0);
    RequireRank(ctx, spec_, 0, 0, Shape::kMaxAxes - 1, "at most 31 axes");
    const int64_t last[] = {columns_};
    const Shape out = in.Replace(in.Rank(), in.Rank(), last);
    rows_ = in.Count();
    in_ = NchwOrder(in);
    out_ = NchwOrder(out);
    ctx.Param("weight", {rule_.classes, columns_}, param.weight_filler());
    if (param.bias_term()) ctx.Param("bias", {columns_}, param.bias_filler());
    ctx.Output(0, out);
    ctx.SaveInput(0);
    ctx.NotDifferentiable(0);
  }

  void Prepare(PrepareContext& ctx) override {
    if (ctx.training()) ctx.Scratch(IndexAddScratch(ctx.device(), rows_));
  }

  void Forward(const RunContext& run) override {
    ReportBadIndices(run, 0, rule_);
    MapRows(run.device(), rows_, columns_,
            TakeVector{run.Input(0).f32(), run.Param(0), run.ParamOrNull(1), run.Output(0).f32(),
                       in_, out_, rule_});
  }

  void ThrowInputError(const RunContext& run, int64_t at, float index) const override {
    ThrowBadIndex(spec_, 0, run.Input(0).shape, rule_, "vectors (input_dim)", at, index);
  }

  void Backward(const RunContext& run) override {
    IndexAdd(
        run.device(), rows_, columns_,
        VectorGradients{run.Input(0).f32(), run.GradOutput(0).f32(), in_, out_, rule_, columns_},
        run.GradParam(0), run.GradParamOrNull(1), run.Scratch());
  }

 private:
  // Throws kConfig for a size that is missing, 0, or beyond 31 bits.
  void RequireSize(const char* field, bool given, int64_t size, const char* meaning) const {
    if (!given) spec_.Fail(Join(field, " is not given; it is ", meaning));
    if (size < 1 || size > INT32_MAX) {
      spec_.FailIn(kEmbedParam, field,
                   Join(field, " is ", size, "; it must be at least 1 and below 2^31"));
    }
  }

  LayerSpec spec_;
  NchwOrder in_, out_;
  LabelRule rule_;
  int64_t rows_ = 0, columns_ = 0;
};

const RegisterLayer<Embed> kEmbed(
    "Embed",
    {.text = "A trained vector for each integer: y = W[x] + b, where W[x] is row x of the "
             "weights.\n"
             "bottom: indices, 0 to input_dim - 1, checked in every pass. top: the bottom's "
             "shape, then num_output.\n"
             "Parameters: weight (input_dim, num_output); bias (num_output) unless bias_term is "
             "false. The indices get no gradient.",
     .param = kEmbedParam});

}  // namespace
}  // namespace trainer
