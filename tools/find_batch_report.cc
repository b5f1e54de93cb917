#include <cmath>

#include "find_batch_search.h"
#include "table.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

std::string Sentences(const BatchResults& report, const BatchSearch& search,
                      const SolverSpec& spec) {
  std::string text =
      report.most_fits
          ? Join("A batch of ", report.largest, " (--most) fits into ", Bytes(search.room))
          : Join("The largest batch that fits into ", Bytes(search.room), " is ", report.largest);
  text += Join(": it takes ", Bytes(report.largest_bytes),
               report.proved ? ", as a run showed." : " by the plan; it was not run.");
  const BatchFigures* const fastest = report.Fastest();
  const BatchFigures* const best = report.Best();
  if (fastest == nullptr) return text;
  text += Join("\nThe fastest is ", fastest->batch, " with ", Fixed(fastest->ImagesPerSecond(), 1),
               " images/s");
  if (best->batch != fastest->batch) {
    const double share = best->ImagesPerSecond() / fastest->ImagesPerSecond();
    text += Join("; ", best->batch, " has ", std::floor(100 * share), " % of that and leaves ",
                 "memory, and more steps for the same records");
  }
  text += Join(". Take it with --batch=", best->batch, " or batch_size: ", best->batch, ".");
  if (best->batch == report.given) return text;
  return text +
         Join("\nbase_lr ", spec.proto.base_lr(), " is for batches of ", report.given, ": with ",
              best->batch, " try ",
              spec.proto.base_lr() * static_cast<float>(best->batch) /
                  static_cast<float>(report.given),
              " with a warm-up, or what 'trainer find-lr --batch=", best->batch,
              "' says; the same number of records is ",
              std::lround(static_cast<double>(spec.proto.max_iter()) * report.given / best->batch),
              " iterations.");
}

}  // namespace

const BatchFigures* BatchResults::Fastest() const {
  const BatchFigures* fastest = nullptr;
  for (const BatchFigures& figures : batches) {
    if (!figures.runs()) continue;
    if (fastest == nullptr || figures.ImagesPerSecond() > fastest->ImagesPerSecond()) {
      fastest = &figures;
    }
  }
  return fastest;
}

const BatchFigures* BatchResults::Best() const {
  constexpr double kNearly = 0.97;
  const BatchFigures* const fastest = Fastest();
  for (const BatchFigures& figures : batches) {
    if (fastest == nullptr || !figures.runs()) continue;
    if (figures.ImagesPerSecond() >= kNearly * fastest->ImagesPerSecond()) return &figures;
  }
  return fastest;
}

std::string ToText(const BatchResults& report, const BatchSearch& search, const SolverSpec& spec) {
  const BatchFigures* const best = report.Best();
  Table table({"batch", "memory", "recomputed", "ms/iteration", "images/s", "median", ""});
  for (const BatchFigures& figures : report.batches) {
    const bool runs = figures.runs();
    table.Add({Join(figures.batch), Bytes(figures.bytes), Join(figures.computed_again),
               runs ? Fixed(figures.Ms(), 2) : "-",
               runs ? Fixed(figures.ImagesPerSecond(), 1) : "-",
               runs ? Join("+", std::lround(100 * figures.Spread()), " %") : "-",
               figures.ran_out                       ? "out of memory"
               : best != nullptr && &figures == best ? "best"
                                                     : ""});
    if (&figures == best) table.MarkLastRow();
  }
  return Join(table.ToString(), "\n", Wrap(Sentences(report, search, spec), 0), "\n");
}

Json ToJson(const BatchResults& report, const BatchSearch& search) {
  Json batches = Json::Array();
  for (const BatchFigures& figures : report.batches) {
    Json json = Json::Object()
                    .Set("batch", static_cast<int64_t>(figures.batch))
                    .Set("bytes", figures.bytes)
                    .Set("computed_again", figures.computed_again)
                    .Set("out_of_memory", figures.ran_out);
    if (figures.runs()) {
      json.Set("ms", static_cast<float>(figures.Ms()))
          .Set("median_ms", static_cast<float>(figures.samples.Median()))
          .Set("measured", figures.samples.size())
          .Set("images_per_second", static_cast<float>(figures.ImagesPerSecond()));
    }
    batches.Push(json);
  }
  Json json = Json::Object()
                  .Set("room_bytes", search.room)
                  .Set("given", static_cast<int64_t>(report.given))
                  .Set("largest", static_cast<int64_t>(report.largest))
                  .Set("largest_bytes", report.largest_bytes)
                  .Set("largest_was_run", report.proved)
                  .Set("batches", std::move(batches));
  if (report.Best() != nullptr) {
    json.Set("fastest", static_cast<int64_t>(report.Fastest()->batch))
        .Set("best", static_cast<int64_t>(report.Best()->batch));
  }
  return json;
}

}  // namespace trainer
