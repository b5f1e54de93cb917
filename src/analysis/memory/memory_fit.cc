#include "trainer/analysis/memory/memory_fit.h"

#include <algorithm>
#include <string_view>

#include "trainer/analysis/memory/stage_memory.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

// Returns the batch for which the items that grow with it fill what the other items leave of
// `room`; 0 if they leave nothing.
int64_t BatchThatFits(size_t room, const std::vector<MemoryItem>& items, int64_t batch) {
  size_t fixed = 0, grows = 0;
  for (const MemoryItem& item : items) (item.grows ? grows : fixed) += item.bytes;
  if (fixed >= room || grows == 0) return 0;
  return static_cast<int64_t>(static_cast<double>(room - fixed) * static_cast<double>(batch) /
                              static_cast<double>(grows));
}

// Returns what `limit` leaves for the activations of the training net; 0 if all items fit already.
// Throws kResource, with the largest items, if it leaves nothing.
size_t BudgetOf(size_t limit, const std::vector<MemoryItem>& items, size_t train_activations) {
  const size_t all = TotalBytes(items), rest = all - train_activations;
  if (all <= limit) return 0;
  if (rest < limit) return limit - rest;
  throw Error(ErrorCode::kResource,
              Join("--memory: the run may use ", Bytes(limit), " but needs ", Bytes(rest),
                   " even without the values of its training net, the only part that can be "
                   "computed again; the largest parts: ",
                   DescribeLargest(items), "; give it more memory"));
}

}  // namespace

MemoryFit CheckFit(const std::vector<MemoryItem>& items, const MemoryRoom& room, int64_t batch) {
  MemoryFit fit = {.room = room, .needed = TotalBytes(items), .batch = batch};
  if (room.bytes == 0) return fit;
  fit.fits = fit.needed <= room.bytes;
  if (batch > 0) fit.batch_that_fits = BatchThatFits(room.bytes, items, batch);
  return fit;
}

std::string ToText(const MemoryFit& fit) {
  std::string text = Join(Bytes(fit.needed), " of memory");
  if (fit.room.bytes == 0) return text;
  text += Join(fit.fits ? " fits into " : " does not fit into ", fit.room.name);
  const int64_t most = fit.batch_that_fits;
  if (most > 0 && most != fit.batch) {
    text += Join(fit.fits ? "; so does a batch of " : "; a batch of ", most,
                 fit.fits ? "" : " would fit");
  } else if (!fit.fits && fit.batch > 0 && most == 0) {
    text += "; no batch would fit";
  }
  return text;
}

Json ToJson(const MemoryFit& fit) {
  return Json::Object()
      .Set("room_bytes", fit.room.bytes)
      .Set("fits", fit.fits)
      .Set("batch", fit.batch)
      .Set("batch_that_fits", fit.batch_that_fits);
}

size_t ActivationBudget(size_t limit, const MemoryEstimate& estimate, const MemoryRoom& room) {
  return BudgetOf(limit, estimate.Items(room), estimate.train_activations);
}

size_t ActivationBudget(size_t limit, const SolverSpec& spec, const Device& device,
                        const Rank& rank) {
  if (rank.size == 1 || spec.proto.strategy() != "pipeline") {
    return ActivationBudget(limit, EstimateMemory(spec, device), UnlimitedRoom(device));
  }
  const StageEstimate stage = EstimateStageMemory(spec, device, rank.size, rank.rank);
  return BudgetOf(limit, stage.items, stage.memory.train_activations) /
         static_cast<size_t>(stage.slots);
}

void RequireRunFits(const SolverSpec& spec, const Device& device, const Rank& rank,
                    Solver& solver) {
  if (device.IsAsync()) return;
  const HostMemory given = ReadHostMemory();
  if (given.total == 0) return;
  const MemoryRoom room = {.bytes = given.total, .name = given.limit};
  const MemoryEstimate estimate = EstimateMemory(spec, solver);
  std::vector<MemoryItem> items = estimate.Items(room);
  for (MemoryItem& item : items) {  // rank 0 alone makes the copy, in memory that all ranks share
    if (std::string_view(item.key) == "snapshot") item.bytes /= static_cast<size_t>(rank.size);
  }
  const MemoryFit fit = CheckFit(items, room, estimate.batch);
  if (fit.fits) return;
  throw Error(
      ErrorCode::kResource,
      Join("the run needs ", Bytes(fit.needed), " of memory, but ", given.limit, " has ",
           Bytes(given.total), "; the largest parts: ", DescribeLargest(items), ". ",
           fit.batch_that_fits > 0
               ? Join("Batches of about ", fit.batch_that_fits, " would fit instead of ", fit.batch)
               : "No batch would fit",
           "; request more memory or lower batch_size ('trainer plan' shows what uses it)"));
}

}  // namespace trainer
