#include "trainer/datasets/pairs.h"

#include <iostream>

#include "dataset_verb.h"

namespace trainer {
namespace {

// Makes a set of pairs of images for a siamese net.
class Pairs final : public DatasetVerb {
 public:
  Pairs() : DatasetVerb(2, 2) {}

 private:
  void DeclareTask(FlagSet& flags) override {
    DeclareBackend(flags);
    DeclareSeed(flags, &seed_, "seed of the pairs");
  }

  void RunTask() override {
    const int64_t records =
        WritePairs(words()[0], words()[1], backend(), static_cast<uint64_t>(seed_));
    std::cout << words()[1] << ": " << records << " records\n";
  }

  int seed_ = 1;
};

const RegisterVerb<Pairs> kPairs("dataset pairs");

}  // namespace
}  // namespace trainer
