// Chooses the outputs that backward recomputes so that the activations of a net fit the activation
// budget.

#include "compile/activation_budget.h"

#include <algorithm>
#include <vector>

#include "compile/build.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// An output that can be recomputed, and the cost of recomputing it in bytes of memory traffic.
struct Candidate {
  ValueId value;
  double work = 0;
};

// Returns the bytes that the layer reads and writes, plus its operations converted to bytes: a
// processor does about kOperationsPerByte operations while it moves one byte.
double RecomputeWork(const Node& node, const Graph& graph) {
  constexpr double kOperationsPerByte = 20;
  double bytes = static_cast<double>(graph.values[node.out[0]].bytes());
  for (const ValueId in : node.in) bytes += static_cast<double>(graph.values[in].bytes());
  for (const Param* param : node.params) bytes += 4.0 * static_cast<double>(param->count());
  return bytes + 2.0 * static_cast<double>(node.layer->Macs()) / kOperationsPerByte;
}

class ActivationBudgetFitter {
 public:
  ActivationBudgetFitter(const NetOptions& options, Graph& graph)
      : options_(options), graph_(graph) {}

  void Run() {
    if (Bytes() <= options_.activation_budget_bytes) return;
    const size_t kept = Bytes();
    std::vector<Candidate> dropped = DropUntilFit(Candidates());
    if (Bytes() > options_.activation_budget_bytes) Fail(kept, dropped.size());
    KeepWhatMay(std::move(dropped));
  }

 private:
  size_t Bytes() const { return graph_.memory.arena_bytes; }

  // Returns the outputs that can be recomputed, sorted by bytes per byte of work, best first.
  std::vector<Candidate> Candidates() const {
    std::vector<Candidate> candidates;
    for (const Node& node : graph_.nodes) {
      if (!CanRecompute(node, options_, graph_)) continue;
      if (graph_.values[node.out[0]].recompute_at) continue;  // as the file asks
      candidates.push_back({node.out[0], RecomputeWork(node, graph_)});
    }
    std::ranges::stable_sort(candidates, std::ranges::greater(), [&](const Candidate& it) {
      return static_cast<double>(graph_.values[it.value].bytes()) / it.work;
    });
    return candidates;
  }

  void Plan(ValueId value, bool drop) {
    graph_.values[value].drop_candidate = drop;
    PlanRecompute(options_, graph_);
    AssignBuffers(options_, graph_);
  }

  // A candidate that saves nothing alone stays dropped, because memory shrinks only when all values
  // that are alive at the same node are dropped. A candidate that needs more memory is
  // rejected.
  std::vector<Candidate> DropUntilFit(const std::vector<Candidate>& candidates) {
    std::vector<Candidate> dropped;
    for (const Candidate& candidate : candidates) {
      if (Bytes() <= options_.activation_budget_bytes) break;
      const size_t before = Bytes();
      Plan(candidate.value, true);
      if (Bytes() > before || !graph_.values[candidate.value].recompute_at) {
        Plan(candidate.value, false);
      } else {
        dropped.push_back(candidate);
      }
    }
    return dropped;
  }

  // Undoes recomputations that are not needed after all, the most work first.
  void KeepWhatMay(std::vector<Candidate> dropped) {
    std::ranges::stable_sort(dropped, std::ranges::greater(), &Candidate::work);
    for (const Candidate& candidate : dropped) {
      Plan(candidate.value, false);
      if (Bytes() > options_.activation_budget_bytes) Plan(candidate.value, true);
    }
  }

  [[noreturn]] void Fail(size_t kept, size_t dropped) const {
    constexpr size_t kShown = 3;
    const auto mib = [](size_t bytes) { return Join((bytes + (1 << 20) - 1) >> 20, " MiB"); };
    std::vector<const Buffer*> blocks;
    for (const Buffer& buffer : graph_.memory.buffers) blocks.push_back(&buffer);
    std::ranges::stable_sort(blocks, std::ranges::greater(), &Buffer::bytes);
    std::vector<std::string> largest;
    for (const Buffer* buffer : std::span(blocks).first(std::min(kShown, blocks.size()))) {
      largest.push_back(Join(buffer->name, " ", mib(buffer->bytes)));
    }
    throw Error(ErrorCode::kResource,
                Join("the values of the net need ", mib(Bytes()), " (", mib(kept),
                     " without recomputation, because ",
                     dropped == 0   ? "no output can be computed again to save memory"
                     : dropped == 1 ? "1 output is now"
                                    : Join(dropped, " outputs are now"),
                     ") and ", mib(options_.activation_budget_bytes),
                     " are available for them; the largest: ", JoinList(largest),
                     "; give a larger --memory or a smaller batch ('trainer find-batch')"));
  }

  const NetOptions& options_;
  Graph& graph_;
};

}  // namespace

void FitActivationBudget(const NetOptions& options, Graph& graph) {
  if (options.activation_budget_bytes > 0) ActivationBudgetFitter(options, graph).Run();
}

}  // namespace trainer
