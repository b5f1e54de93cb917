#pragma once
// Records the card of a run (monitor/run_card.h).

#include <memory>
#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/base/ranks/communicator.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/card_observer.h"
#include "trainer/monitor/energy_meter.h"
#include "trainer/monitor/observer.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/parallel/world.h"
#include "trainer/run/device.h"
#include "trainer/solver/solver.h"

namespace trainer {

// Each rank of a run with --run makes one. It measures the energy of the rank's GPU; one rank of
// each host also measures the processors. Rank 0 writes the card.
class CardRecorder {
 public:
  // Starts to measure. `world` is null in a run alone. `powercap` is the folder of the processors'
  // counters.
  CardRecorder(const Device& device, const DeviceChoice& choice, const World* world,
               const std::string& powercap);

  // Adds the observer that writes the card. Call on rank 0, before the solver opens the data, which
  // this samples. The recorder must outlive the observers.
  void AddObserver(const std::string& folder, const SolverSpec& spec, const RunInfo& info,
                   const SolverOptions& options, ObserverList* observers);

  // Adds the energy of the other ranks to the card. Collective, after training. If the strategy is
  // asynchronous, its ranks make no collective calls at the end: then the card names them as not
  // measured.
  void GatherEnergy(const SolverSpec& spec, Communicator& group);

 private:
  const std::string gpu_flags_;
  const bool others_measure_;  // there are other hosts, or GPUs of other ranks
  EnergyMeter energy_;
  CardObserver* observer_ = nullptr;  // on rank 0; the list owns it
};

}  // namespace trainer
