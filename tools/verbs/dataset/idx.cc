#include <iostream>

#include "dataset_verb.h"
#include "trainer/datasets/mnist.h"

namespace trainer {
namespace {

// Makes a set from an IDX file of images and one of labels, as MNIST has them.
class Idx final : public DatasetVerb {
 public:
  Idx() : DatasetVerb(3, 3) {}

 private:
  void DeclareTask(FlagSet& flags) override { DeclareBackend(flags); }

  void RunTask() override {
    const int64_t records = WriteIdx(words()[0], words()[1], words()[2], backend());
    std::cout << words()[2] << ": " << records << " records\n";
  }
};

const RegisterVerb<Idx> kIdx("dataset idx");

}  // namespace
}  // namespace trainer
