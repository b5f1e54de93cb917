#include <iostream>

#include "dataset_task.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/dataset/reading_rate.h"

namespace trainer {
namespace {

std::string CacheText(const ReadingRate& rate) {
  if (!rate.cold) return "warm";
  if (rate.cached < 0) return "cold, perhaps";
  if (rate.cached < 0.005) return "cold";
  return Join("cold except ", Fixed(100 * rate.cached, 0), "%");
}

void Measure(const Flags& flags) {
  ReadingOptions options;
  options.seconds = flags.Whole("seconds");
  options.threads = ThreadsOf(flags);
  Table table({"read", "cache", "threads", "records", "records/s", "MB/s"});
  for (const ReadingRate& rate : MeasureReading(flags.words()[1], options)) {
    table.Add({rate.order, CacheText(rate), Join(rate.threads), Join(rate.records),
               Fixed(rate.RecordsPerSecond(), 0), Fixed(rate.BytesPerSecond() / 1e6, 1)});
  }
  std::cout << table.ToString();
}

const RegisterDatasetTask kBench(
    "bench",
    {.wanted = "SET",
     .words = 1,
     .text = "'bench' measures how fast SET is read: in order and at random; after the system was "
             "told to drop the files from its cache (cold), and from the cache (warm); decoded by "
             "one thread and by all threads. MB counts the records as stored.",
     .example = "trainer dataset bench data/digits/train_lmdb --seconds=1",
     .flags = {{.name = "seconds",
                .kind = FlagKind::kWhole,
                .value = "N",
                .fallback = "2",
                .help = "bench: the longest time of each measurement",
                .min = 1,
                .max = 86400}},
     .run = Measure});

}  // namespace
}  // namespace trainer
