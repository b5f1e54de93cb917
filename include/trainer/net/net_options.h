#pragma once
// The options by which a net is compiled and run.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/ranks/rank.h"
#include "trainer/config/net_spec.h"
#include "trainer/layers/chain_options.h"
#include "trainer/layers/output_files.h"
#include "trainer/tensor/dtype.h"

namespace trainer {

enum class BufferReuse {
  kShared,    // values share memory when their lifetimes allow
  kSeparate,  // every value has its own block and nothing is in place: for finding wrong lifetimes
  kPoisoned,  // shared, and what is no longer needed is filled with NaN
};

// The tensors that a pipeline stage receives from the stages before it and sends to the stages
// after it. Empty for a whole net. See Graph::boundary_in.
struct StageBoundary {
  struct BoundaryTensor {
    std::string blob;
    DType dtype = DType::kF32;
    bool has_gradient = false;  // which goes the other way
  };
  std::vector<BoundaryTensor> in;  // tops of Input layers
  std::vector<BoundaryTensor>
      out;  // blobs, as their last layer here writes them; no outputs of the net
};

struct NetOptions {
  caffe::NetState state;
  bool training = false;  // plan memory for backward
  bool force_backward = false;
  // Whether biases and the scales of normalisations decay, unless they have a decay_mult.
  bool decays_bias_and_norm = true;
  bool keeps_frozen = true;  // layers with freeze: true do not learn; false after unfreeze_at
  uint64_t seed = 0;
  Rank rank = {};  // selects the shard of the data and the random streams
  // This net computes ranks [rank.rank, rank.rank + virtual_ranks) one after the other: see
  // Pass::virtual_rank.
  int virtual_ranks = 1;
  bool allow_reevaluation = false;  // allows Pass::Batch::kSame, which costs some memory
  bool capture = false;             // records whole passes, where the device can and they are alike
  ChainOptions chain = {};          // of layers that learn from samples of their own model
  BufferReuse memory = BufferReuse::kShared;
  bool recompute = false;  // as the net's `recompute` says, or this
  // Bytes that activations and scratch may take together; 0: no limit. If they need more, the plan
  // chooses outputs that the backward pass recomputes: the same numbers for more work.
  size_t activation_budget_bytes = 0;
  bool fuse = true;  // compute layers along with the one before them; never with kSeparate
  bool log = true;   // Caffe's start-up lines
  // Floats that the run will take for each weight in addition to the weight and its gradient: the
  // update rule's state, averages. Only counted, so that what is too large is refused before it is
  // allocated.
  int states_per_weight = 0;
  OutputFiles output_files = OutputFiles::kDisabled;  // whether layers may write files
  // The folder into which layers write files at snapshots; "" for a run without snapshots.
  std::string snapshot_folder = {};
  // How many batches may have run forward and not yet backward. Each has its own copy of values and
  // scratch memory: see Pass::activation_slot.
  int activation_slots = 1;
  StageBoundary boundary = {};
};

}  // namespace trainer
