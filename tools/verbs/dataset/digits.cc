#include "trainer/datasets/digits.h"

#include <iostream>

#include "dataset_verb.h"

namespace trainer {
namespace {

// Draws a training set and a test set of digits.
class Digits final : public DatasetVerb {
 public:
  Digits() : DatasetVerb(1, 1) {}

 private:
  void DeclareTask(FlagSet& flags) override {
    DeclareBackend(flags);
    DeclareSeed(flags, &seed_, "seed of the digits");
    DeclareThreads(flags);  // accepted, as by every task that writes a set
    flags.Bind(&train_, "train", "N", "how many training images").Range(1);
    flags.Bind(&test_, "test", "N", "how many test images").Range(1);
  }

  void RunTask() override {
    DigitsOptions options;
    options.folder = words()[0];
    options.backend = backend();
    options.train = train_;
    options.test = test_;
    options.seed = static_cast<uint64_t>(seed_);
    const DigitsPaths paths = WriteDigits(options);
    std::cout << paths.train << ": " << options.train << " records\n"
              << paths.test << ": " << options.test << " records\n";
  }

  int train_ = 20000, test_ = 4000, seed_ = 1;
};

const RegisterVerb<Digits> kDigits("dataset digits");

}  // namespace
}  // namespace trainer
