#include <iostream>

#include "dataset_verb.h"
#include "trainer/datasets/convert.h"

namespace trainer {
namespace {

// Splits a set into two.
class Split final : public DatasetVerb {
 public:
  Split() : DatasetVerb(3, 3) {}

 private:
  void DeclareTask(FlagSet& flags) override {
    DeclareBackend(flags);
    DeclareSeed(flags, &seed_, "seed of the choice of records");
    DeclareThreads(flags);
    DeclareWriteCrc(flags);
    DeclareShardSize(flags);
    flags.Bind(&part_, "part", "PART",
               "the share of PART, such as 10% or 0.1, or its number of records, such as 500");
    flags.Bind(&stratified_, "stratified", "", "put the same share of each label into PART");
  }

  void RunTask() override {
    SplitOptions options;
    options.share = ParseSplit("part", part_);
    options.stratified = stratified_;
    options.seed = static_cast<uint64_t>(seed_);
    options.threads = threads();
    const SplitResult result =
        SplitRecords(words()[0], OutputAt(words()[1]), OutputAt(words()[2]), options);
    std::cout << words()[1] << ": " << result.first << " records\n"
              << words()[2] << ": " << result.second << " records\n";
    WriteChecksums(words()[1]);
    WriteChecksums(words()[2]);
  }

  int seed_ = 1;
  std::string part_ = "10%";
  bool stratified_ = false;
};

const RegisterVerb<Split> kSplit("dataset split");

}  // namespace
}  // namespace trainer
