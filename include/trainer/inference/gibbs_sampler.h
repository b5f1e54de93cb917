#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/backend/device_floats.h"
#include "trainer/inference/boltzmann_machine.h"

namespace trainer {

// Samples of a restricted Boltzmann machine or of a deep belief network: Markov chains by Gibbs
// steps in the last of `machines`, each of which has the hidden units of the one before as its
// visible ones, and one pass down through the others (Hinton, Osindero and Teh, Neural Computation
// 18, 2006). Used by one thread; Step allocates nothing.
class GibbsSampler {
 public:
  // `chains` of them, which begin at visible units of the last machine that are 0 or 1, each as
  // likely, or normal numbers. Throws kConfig where the machines do not fit each other.
  GibbsSampler(const Device& device, std::vector<BoltzmannMachine> machines, int chains,
               uint64_t seed);

  // Begins at data instead: (chains, visible) of the first machine, on the host.
  void StartAt(std::span<const float> visible);
  void Step();
  // The means of the first machine's visible units, (chains, visible), on the host, and where the
  // chains are drawn on.
  std::vector<float> Means();

 private:
  struct Level {
    BoltzmannMachine machine;
    BoltzmannProducts products;
    DeviceFloats visible;
  };
  Level& Top() { return *levels_.back(); }
  UnitDraw NextDraw();
  std::span<std::byte> Scratch();
  void Up(Level& level);
  void Down(Level& level, bool draw);

  const Device& device_;
  int chains_;
  uint64_t seed_;
  uint64_t draws_ = 0;
  std::vector<std::unique_ptr<Level>> levels_;
  std::unique_ptr<DeviceFloats> hidden_;  // of the largest machine
  std::unique_ptr<DeviceFloats> scratch_, pass_;
};

}  // namespace trainer
