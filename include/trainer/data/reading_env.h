#pragma once

#include <memory_resource>

#include "trainer/base/random/philox.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

// What a layer that reads ahead knows of the run beside its spec.
struct ReadingEnv {
  caffe::Phase phase = caffe::TEST;
  PhiloxKey key;  // of the order of records and of their transforms: the same for all replicas
  Rank replica;
  int decode_threads = 1;
  std::pmr::memory_resource* host_memory = nullptr;  // of the batches; null: the heap
  // Whether batches hold images as the bytes that were stored, where they were: see Batch::pixels.
  bool bytes = false;
  // Batches of so many replicas, `replica` the first of them, are read together: see Prefetcher.
  int parts = 1;
};

}  // namespace trainer
