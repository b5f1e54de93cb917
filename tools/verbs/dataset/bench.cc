#include <iostream>

#include "dataset_verb.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/datasets/read_benchmark.h"

namespace trainer {
namespace {

// Returns for the table how much of the data the page cache held.
std::string CacheText(const ReadRate& rate) {
  if (!rate.cold) return "warm";
  if (rate.cached < 0) return "cold, perhaps";
  if (rate.cached < 0.005) return "cold";
  return Join("cold except ", Fixed(100 * rate.cached, 0), "%");
}

// Measures how fast the records of a set can be read.
class BenchSet final : public DatasetVerb {
 public:
  BenchSet() : DatasetVerb(1, 1) {}

 private:
  void DeclareTask(FlagSet& flags) override {
    DeclareThreads(flags);
    flags.Bind(&seconds_, "seconds", "N", "the longest time of each measurement").Range(1, 86400);
  }

  void RunTask() override {
    Table table({"read", "cache", "threads", "records", "records/s", "MB/s"});
    const ReadBenchmarkOptions options = {.seconds = static_cast<double>(seconds_),
                                          .threads = threads()};
    for (const ReadRate& rate : BenchmarkReads(words()[0], options)) {
      table.Add({rate.order, CacheText(rate), Join(rate.threads), Join(rate.records),
                 Fixed(rate.RecordsPerSecond(), 0), Fixed(rate.BytesPerSecond() / 1e6, 1)});
    }
    std::cout << table.ToString();
  }

  int seconds_ = 2;
};

const RegisterVerb<BenchSet> kBenchSet("dataset bench");

}  // namespace
}  // namespace trainer
