#include "batch_flag.h"

#include <algorithm>

#include "memory_flags.h"
#include "shared_flags.h"
#include "trainer/analysis/memory/memory_room.h"
#include "trainer/backend/available_memory.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/run/batch_size.h"
#include "trainer/run/resolved_file.h"

namespace trainer {
namespace {

// The batch that is good to begin a run with is found in about this time.
constexpr std::chrono::seconds kSearchTime{20};
constexpr uint32_t kMost = 1024;

}  // namespace

bool WantsBestBatch(const Flags& flags) { return flags.Text("batch") == kBestBatch; }

void ApplyBestBatch(const std::string& memory, MemoryMode mode, const Device& device, bool resumes,
                    SolverSpec* spec) {
  const std::string before = ResolvedPath(*spec);
  if (resumes && Exists(before)) {
    SolverSpec resolved = LoadSolver(before);
    return ChangeBatchSize(BatchSizeOf(&resolved), Join(", which ", before, " has,"), spec);
  }
  BatchSearch search = MakeBatchSearch(memory, mode, device);
  search.most = std::max(kMost, BatchSizeOf(spec));
  search.time = kSearchTime;
  search.iterations = 5;
  const BatchResults report = SearchBatches(search, device, spec);
  const BatchFigures* const best = report.Best();
  ChangeBatchSize(best == nullptr ? std::min(report.largest, report.most_advised) : best->batch,
                  best == nullptr ? ", the largest that fits and is at most a tenth of the records,"
                                  : Join(", the best with ", best->ImagesPerSecond(), " images/s,"),
                  spec);
}

BatchSearch MakeBatchSearch(const std::string& memory, MemoryMode mode, const Device& device) {
  BatchSearch search;
  const std::optional<size_t> limit = ParseMemoryLimit(memory, device);
  search.recomputes = limit.has_value();
  search.memory = mode;
  search.room = limit ? *limit : FindAvailableMemory(device).bytes;
  return search;
}

void TakeBestBatch(const Flags& flags, const Device& device, bool resumes, SolverSpec* spec) {
  if (!WantsBestBatch(flags)) return;
  ApplyBestBatch(flags.Text("memory"), ParseMemoryMode(flags), device, resumes, spec);
}

BatchSearch SearchFor(const Flags& flags, const Device& device) {
  return MakeBatchSearch(flags.Text("memory"), ParseMemoryMode(flags), device);
}

}  // namespace trainer
