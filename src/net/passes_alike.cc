#include "trainer/net/passes_alike.h"

#include <algorithm>

#include "program.h"
#include "trainer/layers/draws_numbers.h"
#include "trainer/layers/works_on_host.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

bool Draws(const StepInfo& step) {
  const auto* const draws = dynamic_cast<const DrawsNumbers*>(step.layer.get());
  return draws != nullptr && draws->Draws();
}

bool Varies(const Net& net, StepId id) {
  const StepInfo& step = net.graph().steps[id];
  const Layer* const layer = step.layer.get();
  const bool brings_batch = step.in.empty() && step.params().empty();
  return brings_batch || dynamic_cast<const WorksOnHost*>(layer) != nullptr || Draws(step) ||
         !net.program().Of(id).forward.State().empty();
}

}  // namespace

bool PassesAreAlike(const Net& net) {
  const auto steps = net.graph().steps.Ids();
  return std::ranges::none_of(steps, [&](StepId id) { return Varies(net, id); }) &&
         std::ranges::none_of(net.params(), &Param::averages);
}

std::vector<std::string> DrawingLayers(const Net& net) {
  std::vector<std::string> names;
  for (const StepInfo& step : net.graph().steps) {
    if (Draws(step)) names.push_back(step.spec.name());
  }
  return names;
}

}  // namespace trainer
