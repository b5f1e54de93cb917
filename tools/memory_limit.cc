#include "memory_limit.h"

#include <algorithm>

#include "plan_parts.h"
#include "plan_stages.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {

Flag MemoryLimitFlag() {
  return {.name = "memory",
          .value = "SIZE|auto",
          .help =
              "memory that the run (each of its ranks) may use, such as 8GiB; auto: the available "
              "memory. A run that needs more drops outputs of layers and computes them again in "
              "the backward pass: same results, more work"};
}

size_t MemoryFor(const Device& device) {
  return device.RunsLater() ? device.FreeBytes() : static_cast<size_t>(ReadHostMemory().total);
}

std::optional<size_t> MemoryLimit(const Flags& flags, const Device& device) {
  const std::string& text = flags.Text("memory");
  if (text.empty() || text == "shared" || text == "separate" || text == "poisoned") {
    return std::nullopt;
  }
  if (text == "auto") return MemoryFor(device);
  if (const std::optional<size_t> size = ParseBytes(text); size && *size > 0) return size;
  throw Error(ErrorCode::kUsage,
              Join("--memory=", EscapeControl(text),
                   ": not a memory size; give the memory of a run, such as 8GiB, or auto"));
}

PlanTarget CountingTarget(const Device& device) {
  PlanTarget target;
  target.gpu = device.RunsLater();
  return target;
}

namespace {

// What is left of `limit` for the `train_values` among the parts; 0 where all of them fit.
size_t LeftForValues(size_t limit, std::vector<PlannedPart> parts, size_t train_values) {
  const size_t all = Sum(parts), rest = all - train_values;
  if (all <= limit) return 0;
  if (rest < limit) return limit - rest;
  constexpr size_t kShown = 3;
  std::ranges::stable_sort(parts, std::ranges::greater(), &PlannedPart::bytes);
  std::vector<std::string> largest;
  for (const PlannedPart& part : std::span(parts).first(std::min(kShown, parts.size()))) {
    largest.push_back(Join(part.name, " ", Bytes(part.bytes)));
  }
  throw Error(ErrorCode::kResource,
              Join("--memory: the run may use ", Bytes(limit), " but needs ", Bytes(rest),
                   " even without the values of its training net, the only part that can be "
                   "computed again; the largest parts: ",
                   JoinList(largest), "; give it more memory"));
}

}  // namespace

size_t MostValueBytes(size_t limit, const SolverSpec& spec, const Device& device) {
  const PlannedRun run = PlanRun(spec, device);
  return LeftForValues(limit, PartsOf(run.totals, CountingTarget(device)), run.train_values);
}

size_t MostValueBytes(const Flags& flags, const SolverSpec& spec, const Device& device,
                      const Rank& replica) {
  const std::optional<size_t> limit = MemoryLimit(flags, device);
  if (!limit) return 0;
  if (replica.size == 1 || spec.proto.strategy() != "pipeline") {
    return MostValueBytes(*limit, spec, device);
  }
  const StageParts stage = PartsOfStage(spec, device, replica.size, replica.rank);
  return LeftForValues(*limit, stage.parts, stage.train_values) / static_cast<size_t>(stage.slots);
}

}  // namespace trainer
