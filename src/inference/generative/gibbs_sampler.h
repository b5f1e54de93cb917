#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/inference/generative/rbm.h"

namespace trainer {

// Draws samples from an RBM or from a deep belief network. Markov chains run Gibbs steps in the
// last RBM. A sample is then propagated down through the other RBMs, where the hidden units of an
// RBM are the visible units of the next (Hinton, Osindero and Teh, Neural Computation 18, 2006).
// Not thread-safe. Step allocates no memory.
class GibbsSampler {
 public:
  // Starts `chains` chains at random visible units of the last RBM: 0 or 1 with equal probability,
  // or standard normal numbers. Throws kConfig if the sizes of neighbouring RBMs differ.
  GibbsSampler(const Device& device, std::vector<RbmModel> rbms, int chains, uint64_t seed);

  // Restarts the chains at data: (chains, visible units of the first RBM) in host memory.
  void StartAt(std::span<const float> visible);
  // Samples the hidden units of the last RBM, and from them its visible units.
  void Step();
  // Returns the means of the first RBM's visible units, (chains, visible), in host memory. This
  // also makes a Gibbs step.
  std::vector<float> Means();

 private:
  // One RBM, and the states of its visible units.
  struct Level {
    RbmModel rbm;
    BoltzmannProducts products;
    DeviceFloats visible;
  };
  // Returns the last RBM, in which the chains run.
  Level& Top() { return *levels_.back(); }
  // Returns random numbers that no earlier draw used.
  UnitDraw NextDraw();
  std::span<std::byte> Scratch();
  // Samples the hidden units of a level from its visible units.
  void Up(Level& level);
  // Computes the means of the visible units from the hidden units, and samples them if `draw`.
  void Down(Level& level, bool draw);

  const Device& device_;
  int chains_;
  uint64_t seed_;
  uint64_t draws_ = 0;
  std::vector<std::unique_ptr<Level>> levels_;
  std::unique_ptr<DeviceFloats> hidden_;  // sized for the largest RBM
  std::unique_ptr<DeviceFloats> scratch_, pass_;
};

}  // namespace trainer
