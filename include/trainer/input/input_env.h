#pragma once

#include <memory_resource>

#include "trainer/base/random/philox.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

// The facts about the run that a data layer needs in addition to its spec.
struct InputEnv {
  caffe::Phase phase = caffe::TEST;
  PhiloxKey key;  // for the order of records and their transforms; the same for all ranks
  Rank rank;
  int decode_threads = 1;
  std::pmr::memory_resource* host_memory = nullptr;  // for the batches; null: the heap
  // Whether batches may hold images as bytes if they are stored as bytes: see Batch::pixels.
  bool bytes = false;
  // Number of ranks, from `rank` on, whose batches are read together: see BatchQueue.
  int virtual_ranks = 1;
};

}  // namespace trainer
