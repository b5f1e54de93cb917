#pragma once
// A job for the program with emulated GPUs, trainer_emulated.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "job.h"

namespace trainer {

// Adds a convolution, a pooling and a ReLU to the small job of job.h.
class GpuJob : public Job {
 public:
  GpuJob() {
    net = Edited(net, R"(layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "data")",
                 R"(layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 4 kernel_size: 5 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
        pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "relu" type: "ReLU" bottom: "pool" top: "pool" }
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "pool")");
  }

  // Returns options for a machine with the GPUs that `machine` describes, see emulated/machine.cc.
  RunOptions gpu_options(const std::string& machine = "") const {
    RunOptions run = options();
    run.emulated_gpu = true;
    run.env.push_back("TRAINER_EMULATED_GPU=" + machine);
    return run;
  }
  Outcome Run(const std::vector<std::string>& arguments, const std::string& machine = "") const {
    Write();
    const Outcome outcome = RunProgram(arguments, gpu_options(machine));
    EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("\nemulated GPU: ")));
    return outcome;
  }
  Outcome TrainOnGpu(const std::vector<std::string>& more = {},
                     const std::string& machine = "") const {
    std::vector<std::string> command = TrainCommand(more);
    command.push_back("--gpu=0");
    return Run(command, machine);
  }
};

class EmulatedGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasEmulatedGpu()) GTEST_SKIP() << "this build has no emulated GPU";
  }

  GpuJob job_;
};

}  // namespace trainer
