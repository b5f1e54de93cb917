#include "trainer/run/search/batch_report.h"

#include <cmath>
#include <optional>

#include "batch_size.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the reason for most_advised, to be inserted after a batch size.
std::string LimitText(const BatchSearchResult& result) {
  return Join(", a tenth of the ", result.records, " records,");
}

// Says which learning rate and how many iterations fit the batch.
std::string AdviceOnLr(const BatchSearchResult& result, const BatchTrial& best,
                       const SolverSpec& spec) {
  const double times = static_cast<double>(best.batch) / result.given;
  const std::optional<double> factor = RateFactor(spec, times);
  const std::string find = Join("'trainer find-lr --batch=", best.batch, "'");
  std::string text = Join("\nbase_lr ", spec.proto.base_lr(), " is for batches of ", result.given);
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
  if (spec.proto.has_max_epoch()) return text + "; max_epoch keeps the number of records.";
  return text + Join("; the same number of records is ",
                     std::lround(static_cast<double>(spec.proto.max_iter()) / times),
                     " iterations.");
}

// Returns the sentences below the table: the largest batch, the fastest one, the one to use, and
// what changes with it.
std::string Sentences(const BatchSearchResult& result, const BatchSearchOptions& options,
                      const SolverSpec& spec) {
  std::string text =
      result.max_fits
          ? Join("A batch of ", result.largest, " (--most) fits into ", Bytes(options.room))
          : Join("The largest batch that fits into ", Bytes(options.room), " is ", result.largest);
  text += Join(": it needs ", Bytes(result.largest_bytes),
               result.proved ? ", measured in a run." : " as planned; it was not run.");
  const BatchTrial* const fastest = result.Fastest();
  const BatchTrial* const best = result.Best();
  if (fastest == nullptr) return text;
  text += Join("\nThe fastest is ", fastest->batch, " with ", Fixed(fastest->ImagesPerSecond(), 1),
               " images/s");
  if (best == nullptr) {
    return text +
           Join(", and no batch up to ", result.most_advised, LimitText(result), " was run.");
  }
  if (best->batch != fastest->batch) {
    const double share = best->ImagesPerSecond() / fastest->ImagesPerSecond();
    text += Join("; ", best->batch, " has ", std::floor(100 * share), " % of that, needs less ",
                 "memory, and makes more steps with the same records");
  }
  text += Join(". To use it: --batch=", best->batch, " or batch_size: ", best->batch, ".");
  if (result.most_advised < fastest->batch || result.most_advised < result.largest) {
    text += Join("\nNo batch above ", result.most_advised, LimitText(result),
                 " is recommended: an epoch would have fewer than ten steps.");
  }
  return best->batch == result.given ? text : text + AdviceOnLr(result, *best, spec);
}

}  // namespace

std::string ToText(const BatchSearchResult& result, const BatchSearchOptions& options,
                   const SolverSpec& spec) {
  const BatchTrial* const best = result.Best();
  Table table({"batch", "memory", "recomputed", "ms/iteration", "images/s", "median, %", ""});
  table.InBytes({"memory"});
  for (const BatchTrial& trial : result.trials) {
    const bool runs = trial.runs();
    table.Add({Join(trial.batch), Join(trial.bytes), Join(trial.recomputed),
               runs ? Fixed(trial.Ms(), 2) : "-", runs ? Fixed(trial.ImagesPerSecond(), 1) : "-",
               runs ? Join("+", std::lround(100 * trial.Spread())) : "-",
               trial.ran_out                       ? "out of memory"
               : best != nullptr && &trial == best ? "best"
                                                   : ""});
    if (&trial == best) table.MarkLastRow();
  }
  return Join(table.ToString(), "\n", Wrap(Sentences(result, options, spec), 0), "\n");
}

Json ToJson(const BatchSearchResult& result, const BatchSearchOptions& options) {
  Json batches = Json::Array();
  for (const BatchTrial& trial : result.trials) {
    Json json = Json::Object()
                    .Set("batch", static_cast<int64_t>(trial.batch))
                    .Set("bytes", trial.bytes)
                    .Set("computed_again", trial.recomputed)
                    .Set("out_of_memory", trial.ran_out);
    if (trial.runs()) {
      json.Set("ms", static_cast<float>(trial.Ms()))
          .Set("median_ms", static_cast<float>(trial.samples.Median()))
          .Set("measured", trial.samples.size())
          .Set("images_per_second", static_cast<float>(trial.ImagesPerSecond()));
    }
    batches.Push(json);
  }
  Json json = Json::Object()
                  .Set("room_bytes", options.room)
                  .Set("given", static_cast<int64_t>(result.given))
                  .Set("largest", static_cast<int64_t>(result.largest))
                  .Set("largest_bytes", result.largest_bytes)
                  .Set("largest_was_run", result.proved)
                  .Set("records", result.records)
                  .Set("batches", std::move(batches));
  if (result.records > 0) json.Set("most_advised", static_cast<int64_t>(result.most_advised));
  if (result.Fastest() != nullptr) {
    json.Set("fastest", static_cast<int64_t>(result.Fastest()->batch));
  }
  if (result.Best() != nullptr) json.Set("best", static_cast<int64_t>(result.Best()->batch));
  return json;
}

}  // namespace trainer
