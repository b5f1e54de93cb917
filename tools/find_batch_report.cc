#include <cmath>
#include <optional>

#include "find_batch_search.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/run/batch_size.h"

namespace trainer {
namespace {

std::string LimitText(const BatchResults& report) {
  return Join(", a tenth of the ", report.records, " records,");
}

// Which rate and how many iterations belong to the batch.
std::string AdviceOnRate(const BatchResults& report, const BatchFigures& best,
                         const SolverSpec& spec) {
  const double times = static_cast<double>(best.batch) / report.given;
  const std::optional<double> factor = RateFactor(spec, times);
  const std::string find = Join("'trainer find-lr --batch=", best.batch, "'");
  std::string text = Join("\nbase_lr ", spec.proto.base_lr(), " is for batches of ", report.given);
  if (factor) {
    text += Join(": with ", best.batch, " try ", static_cast<float>(spec.proto.base_lr() * *factor),
                 " with a warm-up, or the result of ", find);
  } else {
    text += Join(", and no rule says how to scale the learning rate of type ", spec.proto.type(),
                 " with the batch: run ", find);
  }
  if (ScalesByRoot(spec)) {
    text += Join(". Warning: for ", spec.proto.type(),
                 " scaling the learning rate with the square root of the batch often fails; "
                 "compare it with the old learning rate in a short run");
  }
  return text + Join("; the same number of records is ",
                     std::lround(static_cast<double>(spec.proto.max_iter()) / times),
                     " iterations.");
}

std::string Sentences(const BatchResults& report, const BatchSearch& search,
                      const SolverSpec& spec) {
  std::string text =
      report.most_fits
          ? Join("A batch of ", report.largest, " (--most) fits into ", Bytes(search.room))
          : Join("The largest batch that fits into ", Bytes(search.room), " is ", report.largest);
  text += Join(": it needs ", Bytes(report.largest_bytes),
               report.proved ? ", measured in a run." : " as planned; it was not run.");
  const BatchFigures* const fastest = report.Fastest();
  const BatchFigures* const best = report.Best();
  if (fastest == nullptr) return text;
  text += Join("\nThe fastest is ", fastest->batch, " with ", Fixed(fastest->ImagesPerSecond(), 1),
               " images/s");
  if (best == nullptr) {
    return text +
           Join(", and no batch up to ", report.most_advised, LimitText(report), " was run.");
  }
  if (best->batch != fastest->batch) {
    const double share = best->ImagesPerSecond() / fastest->ImagesPerSecond();
    text += Join("; ", best->batch, " has ", std::floor(100 * share), " % of that, needs less ",
                 "memory, and makes more steps with the same records");
  }
  text += Join(". To use it: --batch=", best->batch, " or batch_size: ", best->batch, ".");
  if (report.most_advised < fastest->batch || report.most_advised < report.largest) {
    text += Join("\nNo batch above ", report.most_advised, LimitText(report),
                 " is recommended: an epoch would have fewer than ten steps.");
  }
  return best->batch == report.given ? text : text + AdviceOnRate(report, *best, spec);
}

}  // namespace

const BatchFigures* BatchResults::Fastest() const {
  return FastestUpTo(std::numeric_limits<uint32_t>::max());
}

const BatchFigures* BatchResults::FastestUpTo(uint32_t most) const {
  const BatchFigures* fastest = nullptr;
  for (const BatchFigures& figures : batches) {
    if (!figures.runs() || figures.batch > most) continue;
    if (fastest == nullptr || figures.ImagesPerSecond() > fastest->ImagesPerSecond()) {
      fastest = &figures;
    }
  }
  return fastest;
}

const BatchFigures* BatchResults::Best() const {
  constexpr double kNearly = 0.97;
  const BatchFigures* const fastest = FastestUpTo(most_advised);
  if (fastest == nullptr) return nullptr;
  for (const BatchFigures& figures : batches) {
    if (!figures.runs() || figures.batch > most_advised) continue;
    if (figures.ImagesPerSecond() >= kNearly * fastest->ImagesPerSecond()) return &figures;
  }
  return fastest;
}

std::string ToText(const BatchResults& report, const BatchSearch& search, const SolverSpec& spec) {
  const BatchFigures* const best = report.Best();
  Table table({"batch", "memory", "recomputed", "ms/iteration", "images/s", "median, %", ""});
  table.InBytes({"memory"});
  for (const BatchFigures& figures : report.batches) {
    const bool runs = figures.runs();
    table.Add({Join(figures.batch), Join(figures.bytes), Join(figures.computed_again),
               runs ? Fixed(figures.Ms(), 2) : "-",
               runs ? Fixed(figures.ImagesPerSecond(), 1) : "-",
               runs ? Join("+", std::lround(100 * figures.Spread())) : "-",
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
                  .Set("records", report.records)
                  .Set("batches", std::move(batches));
  if (report.records > 0) json.Set("most_advised", static_cast<int64_t>(report.most_advised));
  if (report.Fastest() != nullptr) {
    json.Set("fastest", static_cast<int64_t>(report.Fastest()->batch));
  }
  if (report.Best() != nullptr) json.Set("best", static_cast<int64_t>(report.Best()->batch));
  return json;
}

}  // namespace trainer
