#include "batch_flag.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>

#include "memory_flags.h"
#include "shared_flags.h"
#include "trainer/analysis/memory/memory_room.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/run/batch_size.h"

namespace trainer {
namespace {

// The batch that is good to begin a run with is found in about this time.
constexpr std::chrono::seconds kSearchTime{20};
constexpr uint32_t kMost = 1024;

uint32_t NumberOf(const std::string& text) {
  uint32_t batch = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), batch);
  if (error != std::errc() || end != text.data() + text.size() || batch == 0 || batch > 1 << 24) {
    throw Error(ErrorCode::kUsage,
                Join("--batch=", EscapeControl(text),
                     ": give the number of images in a batch, such as 64, or auto"));
  }
  return batch;
}

std::string RateAdvice(uint32_t before, uint32_t batch, const SolverSpec& spec) {
  const double times = static_cast<double>(batch) / before;
  const std::optional<double> factor = RateFactor(spec, times);
  const std::string find = Join("'trainer find-lr --batch=", batch, "' tries learning rates)");
  if (!factor) {
    return Join(" (no rule says how to scale the learning rate of type ", spec.proto.type(),
                " with the batch: ", find);
  }
  return Join(" (", static_cast<float>(times), " times the batch size ",
              ScalesByRoot(spec) ? "sometimes" : "often", " needs ", static_cast<float>(*factor),
              " times the learning rate, with a warm-up: ", find);
}

void Change(uint32_t batch, const std::string& why, SolverSpec* spec) {
  const uint32_t before = BatchSizeOf(spec);
  SetBatchSize(batch, spec);
  LOG(INFO) << EscapeControl(Join("--batch: batch_size ", batch, why, " in place of ", before,
                                  "; base_lr ", spec->proto.base_lr(), " and max_iter ",
                                  spec->proto.max_iter(), " are unchanged",
                                  batch == before ? "" : RateAdvice(before, batch, *spec)));
}

}  // namespace

Flag BatchFlag() {
  return {.name = "batch",
          .value = "N|auto",
          .help =
              "replace the batch_size of the training net's data layers; auto: the best by a short "
              "'trainer find-batch'. The learning rate and the number of iterations do not change",
          .also = "batch_size"};
}

bool WantsBestBatch(const Flags& flags) { return flags.Text("batch") == "auto"; }

void TakeBatch(const Flags& flags, const Rank& replica, SolverSpec* spec) {
  if (!flags.Has("batch")) return;
  if (!WantsBestBatch(flags)) return Change(NumberOf(flags.Text("batch")), "", spec);
  if (replica.size > 1 || spec->proto.virtual_ranks() > 1) {
    throw Error(ErrorCode::kUsage,
                "--batch=auto works with one rank only; find the batch size of one rank with "
                "'trainer find-batch', then pass it with --batch=N");
  }
}

void TakeBestBatch(const Flags& flags, const Device& device, bool resumes, SolverSpec* spec) {
  if (!WantsBestBatch(flags)) return;
  const std::string before = ResolvedName(*spec);
  if (resumes && Exists(before)) {
    SolverSpec resolved = LoadSolver(before);
    return Change(BatchSizeOf(&resolved), Join(", which ", before, " has,"), spec);
  }
  BatchSearch search = SearchFor(flags, device);
  search.most = std::max(kMost, BatchSizeOf(spec));
  search.time = kSearchTime;
  search.iterations = 5;
  const BatchResults report = SearchBatches(search, device, spec);
  const BatchFigures* const best = report.Best();
  Change(best == nullptr ? std::min(report.largest, report.most_advised) : best->batch,
         best == nullptr ? ", the largest that fits and is at most a tenth of the records,"
                         : Join(", the best with ", best->ImagesPerSecond(), " images/s,"),
         spec);
}

BatchSearch SearchFor(const Flags& flags, const Device& device) {
  BatchSearch search;
  const std::optional<size_t> limit = MemoryLimit(flags, device);
  search.recomputes = limit.has_value();
  search.memory = ParseMemoryMode(flags);
  search.room = limit ? *limit : AvailableMemory(device);
  return search;
}

std::string ResolvedName(const SolverSpec& spec) {
  return spec.proto.snapshot_prefix() + "_resolved.prototxt";
}

}  // namespace trainer
