#include "checks.h"
#include "trainer/backend/map_rows.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr char kParam[] = "permute_param";

// A tensor's axes in memory order, outermost first.
std::vector<int> MemoryOrder(const Shape& shape) {
  if (shape.IsImage()) return {0, 2, 3, 1};
  std::vector<int> axes;
  for (int axis = 0; axis < shape.Rank(); ++axis) axes.push_back(axis);
  return axes;
}

// Where the elements of a target lie in its source: per axis of the target, in memory order, its
// length and the distance of its elements in the source. Axes that are neighbours in both are one.
struct Gather {
  int axes = 0;
  int64_t length[Shape::kMaxAxes] = {}, step[Shape::kMaxAxes] = {};

  // Axis i of `to` is axis order[i] of `from`.
  Gather() = default;
  Gather(const Shape& from, const Shape& to, const std::vector<int>& order) {
    std::vector<int64_t> distance(order.size());
    int64_t size = 1;
    const std::vector<int> memory = MemoryOrder(from);
    for (auto axis = memory.rbegin(); axis != memory.rend(); ++axis) {
      distance[static_cast<size_t>(*axis)] = size;
      size *= from[*axis];
    }
    for (const int axis : MemoryOrder(to)) {
      if (to[axis] != 1) {
        Append(to[axis], distance[static_cast<size_t>(order[static_cast<size_t>(axis)])]);
      }
    }
    if (axes == 0) Append(1, 1);
  }

  void Append(int64_t count, int64_t distance) {
    if (axes > 0 && step[axes - 1] == count * distance) {
      length[axes - 1] *= count;
      step[axes - 1] = distance;
      return;
    }
    length[axes] = count;
    step[axes++] = distance;
  }

  bool IsIdentity() const { return axes == 1 && step[0] == 1; }
  int64_t RowLength() const { return length[axes - 1]; }
};

// One row per run of the target's last axis.
template <class T>
struct GatherRow {
  const T* from;
  T* to;
  Gather gather;

  template <class Row>
  HD void operator()(const Row& row) const {
    int64_t at = 0, rest = row.index;
    for (int axis = gather.axes - 2; axis >= 0; --axis) {
      at += rest % gather.length[axis] * gather.step[axis];
      rest /= gather.length[axis];
    }
    const T* const source = from + at;
    T* const target = to + row.index * row.length;
    const int64_t step = gather.step[gather.axes - 1];
    row.ForEach([&](int64_t i) { target[i] = source[i * step]; });
  }
};

class Permute final : public Layer {
 public:
  explicit Permute(const LayerSpec& spec) : spec_(spec) {}

  void Plan(PlanContext& plan) override {
    const Shape& in = plan.In(0);
    const std::vector<int> order = ReadOrder(in);
    std::vector<int64_t> dims;
    std::vector<int> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      dims.push_back(in[order[i]]);
      back[static_cast<size_t>(order[i])] = static_cast<int>(i);
    }
    const Shape out(dims);
    forward_ = Gather(in, out, order);
    backward_ = Gather(out, in, back);
    if (forward_.IsIdentity()) return plan.OutIsView(0, 0, out);
    plan.Out(0, out, plan.InType(0));
  }

  void Forward(RunContext& run) override { Move(run.device(), forward_, run.In(0), run.Out(0)); }

  void Backward(RunContext& run) override {
    if (run.WantsGradIn(0)) Move(run.device(), backward_, run.GradOut(0), run.GradIn(0));
  }

 private:
  // The old axis of each new one.
  std::vector<int> ReadOrder(const Shape& in) const {
    const auto& given = spec_.proto().permute_param().order();
    std::vector<int> order;
    std::vector<bool> used(static_cast<size_t>(in.Rank()), false);
    for (int i = 0; i < given.size(); ++i) {
      if (given[i] >= static_cast<uint32_t>(in.Rank())) {
        spec_.FailIn(kParam, "order",
                     Join("order names axis ", given[i], ", but the input ", Dims(in), " has ",
                          in.Rank(), in.Rank() == 1 ? " axis" : " axes", ", counted from 0"),
                     i);
      }
      if (used[given[i]]) {
        spec_.FailIn(kParam, "order", Join("order names axis ", given[i], " twice"), i);
      }
      used[given[i]] = true;
      order.push_back(static_cast<int>(given[i]));
    }
    for (int axis = 0; axis < in.Rank(); ++axis) {
      if (!used[static_cast<size_t>(axis)]) order.push_back(axis);
    }
    return order;
  }

  static void Move(const Device& device, const Gather& gather, const ConstTensor& from,
                   const Tensor& to) {
    if (gather.IsIdentity()) return;
    WithType(from.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      MapRows(device, to.Count() / std::max<int64_t>(1, gather.RowLength()), gather.RowLength(),
              GatherRow<T>{from.As<T>(), to.As<T>(), gather});
    });
  }

  LayerSpec spec_;
  Gather forward_, backward_;
};

const RegisterLayer<Permute> kPermute(
    "Permute",
    {.text = "The same numbers with the axes in another order.\n"
             "Axis i of the top is axis order[i] of the bottom, counted from 0; axes that order "
             "leaves out follow in their old order. The heads of SSD take order: 0 order: 2 "
             "order: 3 order: 1, from (N, C, H, W) to (N, H, W, C).",
     .param = kParam,
     .storage = Storage::kFollows});

}  // namespace
}  // namespace trainer
