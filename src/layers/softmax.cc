#include "checks.h"
#include "functions.h"
#include "trainer/backend/map_rows.h"

namespace trainer {
namespace {

// y_i = exp(x_i - max x) / sum of those; subtracting the maximum keeps exp finite. kSide: whether
// the elements of a row lie side by side.
template <class T, bool kSide>
struct SoftmaxRow {
  const T* x;
  T* y;
  Rows rows;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = kSide ? 1 : rows.inner;
    const float top = row.Max([&](int64_t i) { return Load(x[at + i * step]); });
    const float sum = row.Sum([&](int64_t i) { return Exp(Load(x[at + i * step]) - top); });
    const float scale = 1 / sum;
    row.ForEach(
        [&](int64_t i) { Store(y[at + i * step], Exp(Load(x[at + i * step]) - top) * scale); });
  }
};

// dx_i = y_i * (dy_i - sum_j dy_j * y_j)
template <class T, bool kSide>
struct SoftmaxGradientRow {
  const T *y, *dy;
  T* dx;
  Rows rows;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = kSide ? 1 : rows.inner;
    const float dot =
        row.Sum([&](int64_t i) { return Load(dy[at + i * step]) * Load(y[at + i * step]); });
    row.ForEach([&](int64_t i) {
      const int64_t k = at + i * step;
      Store(dx[k], Load(y[k]) * (Load(dy[k]) - dot));
    });
  }
};

// The same for kLanes rows whose elements lie `step` apart and that lie side by side themselves, on
// the CPU.
constexpr int64_t kLanes = 16;

template <class T>
struct SoftmaxColumns {
  const T* x;
  T* y;
  int64_t length, step;

  __attribute__((always_inline)) void operator()(int64_t at) const {
    float top[kLanes], sum[kLanes];
    for (int l = 0; l < kLanes; ++l) top[l] = -FLT_MAX;
    for (int64_t i = 0; i < length; ++i) {
      const T* const from = x + at + i * step;
      for (int l = 0; l < kLanes; ++l) top[l] = Load(from[l]) > top[l] ? Load(from[l]) : top[l];
    }
    for (int l = 0; l < kLanes; ++l) sum[l] = 0;
    for (int64_t i = 0; i < length; ++i) {
      const T* const from = x + at + i * step;
      for (int l = 0; l < kLanes; ++l) sum[l] += Exp(Load(from[l]) - top[l]);
    }
    for (int l = 0; l < kLanes; ++l) sum[l] = 1 / sum[l];
    for (int64_t i = 0; i < length; ++i) {
      const T* const from = x + at + i * step;
      T* const to = y + at + i * step;
#pragma GCC ivdep
      for (int l = 0; l < kLanes; ++l) Store(to[l], Exp(Load(from[l]) - top[l]) * sum[l]);
    }
  }
};

template <class T>
struct SoftmaxGradientColumns {
  const T *y, *dy;
  T* dx;
  int64_t length, step;

  __attribute__((always_inline)) void operator()(int64_t at) const {
    float dot[kLanes];
    for (int l = 0; l < kLanes; ++l) dot[l] = 0;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t k = at + i * step;
      for (int l = 0; l < kLanes; ++l) dot[l] += Load(dy[k + l]) * Load(y[k + l]);
    }
    for (int64_t i = 0; i < length; ++i) {
      const int64_t k = at + i * step;
#pragma GCC ivdep
      for (int l = 0; l < kLanes; ++l) {
        Store(dx[k + l], Load(y[k + l]) * (Load(dy[k + l]) - dot[l]));
      }
    }
  }
};

// f(place of the first element) for each group of kLanes rows, which divide rows.inner.
template <class F>
void MapColumns(const Rows& rows, F f) {
  const int64_t work = std::max<int64_t>(1, kLanes * rows.length);
  ParallelFor(
      rows.count / kLanes,
      [=](int64_t group) __attribute__((always_inline)) { f(rows.Start(group * kLanes)); },
      std::max<int64_t>(1, parallel_for_internal::kGrain / work));
}

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
      const T* x = run.In(0).As<T>();
      T* y = run.Out(0).As<T>();
      if (InColumns(run))
        return MapColumns(rows_, SoftmaxColumns<T>{x, y, rows_.length, rows_.inner});
      if (rows_.inner == 1) return ForRows(run, SoftmaxRow<T, true>{x, y, rows_});
      ForRows(run, SoftmaxRow<T, false>{x, y, rows_});
    });
  }
  void Backward(RunContext& run) override {
    WithType(run.Out(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T *y = run.Out(0).As<T>(), *dy = run.GradOut(0).As<T>();
      T* dx = run.GradIn(0).As<T>();
      if (InColumns(run)) {
        return MapColumns(rows_, SoftmaxGradientColumns<T>{y, dy, dx, rows_.length, rows_.inner});
      }
      if (rows_.inner == 1) return ForRows(run, SoftmaxGradientRow<T, true>{y, dy, dx, rows_});
      ForRows(run, SoftmaxGradientRow<T, false>{y, dy, dx, rows_});
    });
  }

 private:
  bool InColumns(const RunContext& run) const {
    return run.device().kind() == DeviceKind::kCpu && rows_.inner % kLanes == 0;
  }
  template <class F>
  void ForRows(const RunContext& run, F f) const {
    MapRows(run.device(), rows_.count, rows_.length, f);
  }

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
