#include "trainer/datasets/mean.h"

#include <iostream>

#include "dataset_verb.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

// Writes the mean image of a set, and prints the mean of each channel.
class Mean final : public DatasetVerb {
 public:
  Mean() : DatasetVerb(2, 2) {}

 private:
  void DeclareTask(FlagSet& flags) override {
    flags.Bind(&force_, "force", "", "replace the mean file if it already exists");
  }

  void RunTask() override {
    const std::string& output = words()[1];
    RefuseToReplace(output, force_);
    const MeanResult result = WriteMean(words()[0], output);
    std::cout << output << ": mean of " << result.records << " records of " << result.shape << "\n";
    for (size_t c = 0; c < result.values.size(); ++c) {
      std::cout << "mean_value channel [" << c << "]: " << result.values[c] << "\n";
    }
  }

  bool force_ = false;
};

const RegisterVerb<Mean> kMean("dataset mean");

}  // namespace
}  // namespace trainer
