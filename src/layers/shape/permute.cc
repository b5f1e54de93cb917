#include "shared/checks.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kPermuteParam[] = "permute_param";

// Returns a tensor's axes in memory order, outermost first.
std::vector<int> MemoryOrder(const Shape& shape) {
  if (shape.IsImage()) return {0, 2, 3, 1};
  std::vector<int> axes;
  for (int axis = 0; axis < shape.Rank(); ++axis) axes.push_back(axis);
  return axes;
}

// Describes a copy from `from` to `to`, whose axis i is axis order[i] of `from`.
CopyDesc PermutedCopy(const Shape& from, const Shape& to, const std::vector<int>& order,
                      size_t element_bytes) {
  std::vector<int64_t> distance(order.size());
  int64_t size = 1;
  const std::vector<int> memory = MemoryOrder(from);
  for (auto axis = memory.rbegin(); axis != memory.rend(); ++axis) {
    distance[static_cast<size_t>(*axis)] = size;
    size *= from[*axis];
  }
  CopyDesc copy(element_bytes);
  int64_t rest = to.Count();
  for (const int axis : MemoryOrder(to)) {
    if (to[axis] > 1) rest /= to[axis];
    copy.Axis(to[axis], distance[static_cast<size_t>(order[static_cast<size_t>(axis)])], rest);
  }
  return copy;
}

// Reorders the axes: axis i of the output is axis order[i] of the input. A view if the order in
// memory stays the same, which depends on the image layout.
class Permute final : public Layer {
 public:
  explicit Permute(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const Shape& in = ctx.Input(0);
    const std::vector<int> order = ReadOrder(in);
    std::vector<int64_t> dims;
    std::vector<int> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      dims.push_back(in[order[i]]);
      back[static_cast<size_t>(order[i])] = static_cast<int>(i);
    }
    const Shape out(dims);
    forward_ = PermutedCopy(in, out, order, SizeOf(ctx.InputType(0)));
    backward_ = PermutedCopy(out, in, back, SizeOf(ctx.InputType(0)));
    if (IsIdentity()) return ctx.OutputView(0, 0, out);
    ctx.Output(0, out, ctx.InputType(0));
  }

  void Forward(const RunContext& run) override {
    if (!IsIdentity()) run.device().Copy(forward_, run.Input(0).data, run.Output(0).data);
  }
  void Backward(const RunContext& run) override {
    if (IsIdentity() || !run.NeedsGradInput(0)) return;
    run.device().Copy(backward_, run.GradOutput(0).data, run.GradInput(0).data);
  }

 private:
  // Returns the old axis of each new axis; axes that `order` omits follow in their old order.
  // Throws kConfig for an axis that does not exist or is named twice.
  std::vector<int> ReadOrder(const Shape& in) const {
    const auto& given = spec_.proto().permute_param().order();
    std::vector<int> order;
    std::vector<bool> used(static_cast<size_t>(in.Rank()), false);
    for (int i = 0; i < given.size(); ++i) {
      if (given[i] >= static_cast<uint32_t>(in.Rank())) {
        spec_.FailIn(kPermuteParam, "order",
                     Join("order names axis ", given[i], ", but the input ", Dims(in), " has ",
                          in.Rank(), in.Rank() == 1 ? " axis" : " axes", ", numbered from 0"),
                     i);
      }
      if (used[given[i]]) {
        spec_.FailIn(kPermuteParam, "order", Join("order names axis ", given[i], " twice"), i);
      }
      used[given[i]] = true;
      order.push_back(static_cast<int>(given[i]));
    }
    for (int axis = 0; axis < in.Rank(); ++axis) {
      if (!used[static_cast<size_t>(axis)]) order.push_back(axis);
    }
    return order;
  }

  // Returns true if the copy would leave the order in memory unchanged.
  bool IsIdentity() const {
    return forward_.axes == 0 || (forward_.axes == 1 && forward_.from_step[0] == 1);
  }

  LayerSpec spec_;
  CopyDesc forward_, backward_;
};

const RegisterLayer<Permute> kPermute(
    "Permute",
    {.text = "The same numbers with the axes in another order.\n"
             "Axis i of the top is axis order[i] of the bottom, numbered from 0. Axes that are "
             "not in `order` follow in their old order. The heads of SSD use order: 0 order: 2 "
             "order: 3 order: 1, from (N, C, H, W) to (N, H, W, C).",
     .param = kPermuteParam,
     .dtypes = DtypePolicy::kFollowsConsumers});

}  // namespace
}  // namespace trainer
