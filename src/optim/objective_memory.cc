#include <bit>

#include "trainer/optim/objective.h"

namespace trainer {
namespace {

size_t BytesOf(const Graph& graph, bool (*counts)(const Param&)) {
  int64_t count = 0;
  for (const Param* param : graph.params) {
    if (counts(*param)) count += ParamStore::PaddedCount(param->count());
  }
  return static_cast<size_t>(count) * sizeof(float);
}

}  // namespace

// One sum waits at each level of the tree except the last. With several passes per virtual rank,
// the gradients of each virtual rank are kept until its next pass instead.
int ExtraGradients(int virtual_ranks, int iter_size) {
  if (virtual_ranks == 1) return 0;
  return iter_size > 1 ? virtual_ranks : std::bit_width(static_cast<unsigned>(virtual_ranks)) - 1;
}

size_t GradientBytes(const Graph& graph) {
  return BytesOf(graph, [](const Param& p) { return p.lr_mult != 0; });
}

size_t ExtraVirtualRankBytes(const Graph& graph, int virtual_ranks, int iter_size) {
  if (virtual_ranks == 1) return 0;
  const size_t averages = BytesOf(graph, [](const Param& p) { return p.is_running_stat; });
  size_t states = 0;
  for (const Buffer& block : graph.memory.buffers) {
    if (block.kind == BufferKind::kState) states += block.bytes;
  }
  const auto copies = static_cast<size_t>(ExtraGradients(virtual_ranks, iter_size));
  const auto count = static_cast<size_t>(virtual_ranks);
  return GradientBytes(graph) * copies + averages * (count + 1) + states * count;
}

}  // namespace trainer
