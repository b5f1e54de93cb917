#pragma once
// A list of many arrays, for kernels that process all of them in one launch: see
// loops/multi_tensor.h.

#include <memory>
#include <vector>

#include "trainer/backend/device/device.h"

namespace trainer {

// Arrays of the same length on the device whose elements with the same index belong together.
struct TensorTuple {
  static constexpr int kMaxArrays = 5;
  int64_t count = 0;
  float* array[kMaxArrays] = {};  // the used ones come first, the others are null
};

// The part of a segment that one block of threads processes: elements [begin, end).
struct TensorChunk {
  int32_t segment = 0;
  int32_t aligned = 0;  // 1 if all arrays are aligned to 16 bytes
  int64_t begin = 0, end = 0;
};

// An immutable list. A device that launches kernels gets a copy in its memory, cut into chunks of
// similar size.
class TensorList {
 public:
  static constexpr int64_t kChunk = 4096;
  static constexpr int kMaxSums = 2;  // sums that one MultiTensorReduce may compute

  // The device must outlive it.
  TensorList(const Device& device, std::vector<TensorTuple> segments);

  int size() const { return static_cast<int>(segments_.size()); }
  const TensorTuple& operator[](int i) const { return segments_[static_cast<size_t>(i)]; }

  // Null unless the device launches kernels. In its memory: the list, its chunks, and kMaxSums
  // numbers for each chunk.
  const TensorTuple* list() const { return static_cast<const TensorTuple*>(list_.get()); }
  const TensorChunk* chunks() const { return static_cast<const TensorChunk*>(chunks_.get()); }
  float* partials() const { return static_cast<float*>(partials_.get()); }
  // Returns, in the device's memory, the index of each segment's first chunk, followed by the
  // number of all chunks.
  const int32_t* first_chunks() const { return static_cast<const int32_t*>(firsts_.get()); }
  // Returns the index of a segment's first chunk, on the host; of segment size(), the number of all
  // chunks.
  int FirstChunk(int segment) const { return first_chunk_[static_cast<size_t>(segment)]; }

 private:
  struct Free {
    const Device* device;
    void operator()(void* memory) const { device->Free(memory); }
  };
  using Memory = std::unique_ptr<void, Free>;
  // Returns a copy of host memory on the device.
  Memory Copy(const Device& device, const void* from, size_t bytes) const;

  std::vector<TensorTuple> segments_;
  std::vector<int32_t> first_chunk_;
  Memory list_, chunks_, firsts_, partials_;
};

}  // namespace trainer
