#include "run_memory.h"

#include <algorithm>

#include "plan_parts.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/steps/step_rule.h"

namespace trainer {
namespace {

PlannedTotals TotalsOf(const SolverSpec& spec, Solver& solver) {
  const Net& train = solver.train_net();
  PlannedTotals totals;
  totals.AddNet(train);
  for (int i = 0; i < solver.NumTestNets(); ++i) {
    if (solver.HasTestNet(i)) totals.AddNet(solver.test_net(i));
    if (const Net* last = solver.LastBatchNet(i)) totals.AddNet(*last);
  }
  size_t weights = 0;
  for (const Param* param : train.params()) {
    weights += static_cast<size_t>(ParamStore::Padded(param->count())) * sizeof(float);
  }
  totals.SetRun(spec, *MakeStepRule(spec), train, weights);
  return totals;
}

// "values of all nets 1.20 GiB, parameters 300.0 MiB, ..."
std::string LargestPart(std::vector<PlannedPart> parts) {
  constexpr size_t kShown = 3;
  std::ranges::stable_sort(parts, std::ranges::greater(), &PlannedPart::bytes);
  std::vector<std::string> texts;
  for (const PlannedPart& part : std::span(parts).first(std::min(parts.size(), kShown))) {
    texts.push_back(Join(part.name, " ", Bytes(part.bytes)));
  }
  return JoinList(texts);
}

}  // namespace

void RequireMemory(const SolverSpec& spec, const Device& device, const Rank& replica,
                   Solver& solver) {
  if (device.RunsLater()) return;
  const HostMemory given = ReadHostMemory();
  if (given.total == 0) return;
  PlanTarget target;
  target.room = given.total;
  std::vector<PlannedPart> parts = PartsOf(TotalsOf(spec, solver), target);
  for (PlannedPart& part : parts) {  // one for all ranks, which share the memory
    if (std::string_view(part.key) == "snapshot") part.bytes /= static_cast<size_t>(replica.size);
  }
  const int64_t batch = BatchOf(solver.train_net());
  const Verdict verdict = Judge(target, parts, batch);
  if (verdict.fits) return;
  throw Error(
      ErrorCode::kResource,
      Join("the run needs ", Bytes(Sum(parts)), " of memory, but ", given.limit, " has ",
           Bytes(given.total), "; the largest parts: ", LargestPart(parts), ". ",
           verdict.batch_that_fits > 0
               ? Join("Batches of about ", verdict.batch_that_fits, " would fit instead of ", batch)
               : "No batch would fit",
           "; request more memory or lower batch_size ('trainer plan' shows what uses it)"));
}

}  // namespace trainer
