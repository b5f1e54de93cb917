#include "batch_flag.h"

#include <algorithm>

#include "memory_flags.h"
#include "shared_flags.h"
#include "trainer/backend/available_memory.h"
#include "trainer/base/error/error.h"
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

Flag BatchFlag() {
  return {.name = "batch",
          .value = "N|auto",
          .help =
              "replace the batch_size of the training net's data layers; auto: the best by a short "
              "'trainer find-batch'. The learning rate and the number of iterations do not change",
          .also = "batch_size"};
}

bool WantsBestBatch(const Flags& flags) { return flags.Text("batch") == kBestBatch; }

void TakeBestBatch(const Flags& flags, const Device& device, bool resumes, SolverSpec* spec) {
  if (!WantsBestBatch(flags)) return;
  const std::string before = ResolvedPath(*spec);
  if (resumes && Exists(before)) {
    SolverSpec resolved = LoadSolver(before);
    return ChangeBatchSize(BatchSizeOf(&resolved), Join(", which ", before, " has,"), spec);
  }
  BatchSearch search = SearchFor(flags, device);
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

BatchSearch SearchFor(const Flags& flags, const Device& device) {
  BatchSearch search;
  const std::optional<size_t> limit = MemoryLimit(flags, device);
  search.recomputes = limit.has_value();
  search.memory = ParseMemoryMode(flags);
  search.room = limit ? *limit : FindAvailableMemory(device).bytes;
  return search;
}

}  // namespace trainer
