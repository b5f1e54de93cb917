#include "checks.h"
#include "functions.h"
#include "trainer/backend/map_rows.h"

namespace trainer {
namespace {

// y_i = exp(x_i - max x) / sum of those; subtracting the maximum keeps exp finite.
template <class T>
struct SoftmaxRow {
  const T* x;
  T* y;
  Rows rows;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const float top = row.Max([&](int64_t i) { return Load(x[at + i * step]); });
    const float sum = row.Sum([&](int64_t i) { return Exp(Load(x[at + i * step]) - top); });
    const float scale = 1 / sum;
    row.ForEach(
        [&](int64_t i) { Store(y[at + i * step], Exp(Load(x[at + i * step]) - top) * scale); });
  }
};

// dx_i = y_i * (dy_i - sum_j dy_j * y_j)
template <class T>
struct SoftmaxGradientRow {
  const T *y, *dy;
  T* dx;
  Rows rows;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const float dot =
        row.Sum([&](int64_t i) { return Load(dy[at + i * step]) * Load(y[at + i * step]); });
    row.ForEach([&](int64_t i) {
      const int64_t k = at + i * step;
      Store(dx[k], Load(y[k]) * (Load(dy[k]) - dot));
    });
  }
};

class Softmax final : public Layer {
 public:
  explicit Softmax(const LayerSpec& spec) : spec_(spec) {}

  void Plan(PlanContext& plan) override {
    const int axis = spec_.proto().softmax_param().axis();
    rows_ = AxisRows(plan.In(0), AxisIn(spec_, "softmax_param", "axis", axis, plan.In(0)));
    plan.Out(0, plan.In(0), plan.InType(0));
    plan.KeepOutput(0);
    plan.AllowInPlace();
  }
  void Forward(RunContext& run) override {
    WithType(run.In(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      MapRows(run.device(), rows_.count, rows_.length,
              SoftmaxRow<T>{run.In(0).As<T>(), run.Out(0).As<T>(), rows_});
    });
  }
  void Backward(RunContext& run) override {
    WithType(run.Out(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      MapRows(run.device(), rows_.count, rows_.length,
              SoftmaxGradientRow<T>{run.Out(0).As<T>(), run.GradOut(0).As<T>(),
                                    run.GradIn(0).As<T>(), rows_});
    });
  }

 private:
  LayerSpec spec_;
  Rows rows_;
};

const RegisterLayer<Softmax> kSoftmax(
    "Softmax", {.text = "y_i = exp(x_i) / sum_j exp(x_j) along `axis` (default 1). Any shape; may "
                        "work in place.",
                .param = "softmax_param",
                .storage = Storage::kChosen});

}  // namespace
}  // namespace trainer
