#pragma once
// The state that the layers of a net keep between passes, for snapshots.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// The state of one layer, or the position of one data source.
struct LayerState {
  std::string layer, bytes;
  // Whether the state differs between ranks. A position in data counts the records of all ranks and
  // is the same for each.
  bool per_rank = false;
  // If per_rank, the states of virtual ranks 1, 2, ...; `bytes` is the state of virtual rank 0.
  std::vector<std::string> other_virtual_ranks;
};

// Returns the state of every layer that has one. Call between iterations.
std::vector<LayerState> SaveLayerStates(const Net& net);
// Restores the states after `passes` passes, so that the run continues with the same bits. Call
// before the first pass. Returns the names of the layers that keep a state which `states` lacks;
// they start as in a new run. Throws kBadSnapshot if a state does not fit its layer, or is not
// there for each virtual rank. Ignores the states of layers that the net does not have.
std::vector<std::string> Restore(Net& net, uint32_t passes, const std::vector<LayerState>& states);

// Calls the layers that write a file at every snapshot, after iteration `iter`. An error of one
// layer is thrown after the files of the other layers are written.
void WriteLayerFiles(Net& net, int iter);

}  // namespace trainer
