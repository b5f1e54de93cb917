#pragma once
// What the layers of a net remember from pass to pass, for snapshots.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// What a layer leaves to its next pass, or the position of a data source.
struct LayerState {
  std::string layer, bytes;
  // Whether it is this replica's own. A position in data counts the records of all replicas and is
  // the same for each.
  bool per_rank = false;
  // Where it is, of a net of several parts: those of parts 1, 2, ...; `bytes` is that of part 0.
  std::vector<std::string> other_virtual_ranks;
};

// Of every layer that has one. Between iterations.
std::vector<LayerState> SaveLayerStates(Net& net);
// Goes on bit for bit after `passes` passes, which left these. Before the first pass. Throws
// kBadSnapshot for what another net left.
void Restore(Net& net, uint32_t passes, const std::vector<LayerState>& states);

// Tells the layers that write a file of their own at every snapshot, after iteration `iter`. Throws
// what writing throws, the other layers' files written all the same.
void WriteLayerFiles(Net& net, int iter);

}  // namespace trainer
