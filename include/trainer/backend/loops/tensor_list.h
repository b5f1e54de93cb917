#pragma once
// Many arrays as one list, for kernels that treat all of them in one launch: see
// loops/multi_tensor.h.

#include <memory>
#include <vector>

#include "trainer/backend/device/device.h"

namespace trainer {

// Arrays of one length on the device, whose elements belong together.
struct TensorTuple {
  static constexpr int kMaxArrays = 5;
  int64_t count = 0;
  float* array[kMaxArrays] = {};  // the first ones are there, the others null
};

// What a block of threads takes of a segment: elements [begin, end).
struct TensorChunk {
  int32_t segment = 0;
  int32_t aligned = 0;  // all arrays begin at 16 bytes
  int64_t begin = 0, end = 0;
};

// A list that holds. A device that starts kernels has a copy, cut into chunks of like sizes.
class TensorList {
 public:
  static constexpr int64_t kChunk = 4096;
  static constexpr int kMaxSums = 2;  // of MultiTensorReduce

  // The device must outlive it.
  TensorList(const Device& device, std::vector<TensorTuple> segments);

  int size() const { return static_cast<int>(segments_.size()); }
  const TensorTuple& operator[](int i) const { return segments_[static_cast<size_t>(i)]; }

  // Of such a device alone, in its memory: the list, its chunks, and kMostSums numbers for each.
  const TensorTuple* list() const { return static_cast<const TensorTuple*>(list_.get()); }
  const TensorChunk* chunks() const { return static_cast<const TensorChunk*>(chunks_.get()); }
  float* partials() const { return static_cast<float*>(partials_.get()); }
  // For each segment the number of its first chunk, and at last that of all.
  const int32_t* first_chunks() const { return static_cast<const int32_t*>(firsts_.get()); }
  int FirstChunk(int segment) const { return first_chunk_[static_cast<size_t>(segment)]; }

 private:
  struct Free {
    const Device* device;
    void operator()(void* memory) const { device->Free(memory); }
  };
  using Memory = std::unique_ptr<void, Free>;
  Memory Copy(const Device& device, const void* from, size_t bytes) const;

  std::vector<TensorTuple> segments_;
  std::vector<int32_t> first_chunk_;
  Memory list_, chunks_, firsts_, partials_;
};

}  // namespace trainer
