#include "trainer/datasets/cifar.h"

#include <iostream>

#include "dataset_verb.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

// Makes a training set, a test set and a mean from CIFAR's binary files.
class CifarVerb : public DatasetVerb {
 public:
  CifarVerb() : DatasetVerb(2, 2) {}

 protected:
  void DeclareTask(FlagSet& flags) override {
    DeclareBackend(flags);
    flags.Bind(&force_, "force", "", "replace the mean file if it already exists");
    flags
        .Bind(&pad_, "pad", "N",
              "put a black border of N pixels around each image, so that random crops shift it")
        .Range(0, 32);
  }

  void RunTask() override {
    RefuseToReplace(JoinPath(words()[1], "mean.binaryproto"), force_);
    const Cifar10Files made = WriteSets();
    std::cout << made.train << ": " << made.train_records << " records\n"
              << made.test << ": " << made.test_records << " records\n"
              << made.mean << ": mean of the training images\n";
  }

  // Writes both sets and the mean, and returns their paths and numbers of records.
  virtual Cifar10Files WriteSets() const = 0;
  int pad() const { return pad_; }

 private:
  bool force_ = false;
  int pad_ = 0;
};

class Cifar10 final : public CifarVerb {
  Cifar10Files WriteSets() const override {
    return WriteCifar10(words()[0], words()[1], backend(), pad());
  }
};

class Cifar100 final : public CifarVerb {
  // Adds --cifar100_labels, the choice between the 100 classes and their 20 groups.
  void DeclareTask(FlagSet& flags) override {
    CifarVerb::DeclareTask(flags);
    flags.BindChoice(&labels_, "cifar100_labels", "fine|coarse",
                     {{"fine", Cifar100Labels::kFine}, {"coarse", Cifar100Labels::kCoarse}},
                     "label with the 100 classes (fine) or their 20 groups (coarse)");
  }

  Cifar10Files WriteSets() const override {
    return WriteCifar100(words()[0], words()[1], labels_, backend(), pad());
  }

  Cifar100Labels labels_ = Cifar100Labels::kFine;
};

const RegisterVerb<Cifar10> kCifar10("dataset cifar10");
const RegisterVerb<Cifar100> kCifar100("dataset cifar100");

}  // namespace
}  // namespace trainer
