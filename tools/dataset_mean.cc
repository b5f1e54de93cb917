#include <iostream>

#include "dataset_task.h"
#include "shared_flags.h"
#include "trainer/dataset/dataset.h"

namespace trainer {
namespace {

void ComputeMean(const Flags& flags) {
  const std::string& output = flags.words()[2];
  RefuseToReplace(flags, output);
  const MeanResult result = WriteMean(flags.words()[1], output);
  std::cout << output << ": mean of " << result.records << " records of " << result.shape << "\n";
  for (size_t c = 0; c < result.values.size(); ++c) {
    std::cout << "mean_value channel [" << c << "]: " << result.values[c] << "\n";
  }
}

const RegisterDatasetTask kDatasetMeanTask(
    "mean",
    {.wanted = "SET FILE",
     .words = 2,
     .text = "'mean' writes the mean of all records of SET to FILE, a binaryproto for mean_file of "
             "transform_param. It also prints the mean of each channel, for mean_value.",
     .example = "trainer dataset mean train_lmdb mean.binaryproto",
     .run = ComputeMean});

}  // namespace
}  // namespace trainer
