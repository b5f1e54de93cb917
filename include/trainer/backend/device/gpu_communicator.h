#pragma once
// Communicators that sum a GPU's gradients over the ranks of a run.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/base/ranks/communicator.h"

namespace trainer {

struct GpuGroupOptions {
  Communicator* host = nullptr;  // sums arrays in host memory; outlives the group
  std::function<void()> poll;    // advances the pending sums of `host`
  size_t bucket_floats = 1;      // slices are joined into buckets of at least this size
  // Sums `values`, in GPU memory, over the ranks with MPI; the sum is done when it returns. Calls
  // `use_gpu` first, on the thread that calls MPI. Empty if the MPI library does not accept GPU
  // memory.
  std::function<void(std::span<float> values, const std::function<void()>& use_gpu)> sum_by_mpi =
      nullptr;
};

// All three groups sum gradients in place in the memory of `device`, a GPU that must outlive them.
// Their work overlaps with the GPU's computations: the sum of a bucket starts when the bucket has
// been computed, and its update when the sum is done. Other calls go to `host`. Every rank must
// create its group at the same point of its sequence of calls.

// Copies buckets to page-locked host memory, sums them there with `host`, and copies them back.
std::unique_ptr<Communicator> MakeStagedGroup(const Device& device, const GpuGroupOptions& options);

// Sums from GPU to GPU with NCCL and sets `*note` to NCCL's version. If any rank cannot use NCCL,
// returns null on all ranks and sets `*note` to the reason.
std::unique_ptr<Communicator> MakeNcclGroup(const Device& device, const GpuGroupOptions& options,
                                            std::string* note);

// Sums from GPU to GPU with MPI while computations continue. Needs `sum_by_mpi` on all ranks;
// otherwise returns null on all ranks and sets `*note` to the reason.
std::unique_ptr<Communicator> MakeMpiGroup(const Device& device, const GpuGroupOptions& options,
                                           std::string* note);

}  // namespace trainer
