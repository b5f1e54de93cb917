#pragma once
// What one rank computes in an iteration, and when which gradients are ready: measured here, given,
// or estimated for a GPU.

#include <optional>
#include <string>

#include "time_report.h"
#include "trainer/net/net.h"
#include "trainer/scaling/step.h"

namespace trainer {

// What a processor can do at most.
struct GpuSpec {
  std::string_view name;
  double f32_flops = 0, bf16_flops = 0;  // per second, in products of matrices
  double bytes = 0;                      // per second, of its memory
  double launch = 0;                     // seconds that any kernel takes at least
  std::string_view inside;               // the link between several in a machine
};
// Null where no GPU has that name; upper and lower case are the same.
const GpuSpec* FindGpu(const std::string& name);
std::string GpuNames();

// From the times of `trainer time`, on average: what holds up one iteration holds up all ranks.
// `passes`: iter_size.
StepWork MeasuredWork(const Net& net, const Times& times, int passes);

// The least time that products or memory of a GPU need for each layer, divided by the part that
// trained nets reach of it. The net may be planned only.
StepWork EstimatedWork(const Net& net, const GpuSpec& gpu, int passes, int states_per_weight);

// `seconds` of an iteration, split as on a processor with 20 operations to a byte.
StepWork GivenWork(const Net& net, double seconds, int passes, int states_per_weight);

}  // namespace trainer
