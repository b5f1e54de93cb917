#pragma once
// Sums of a GPU's gradients over the ranks of a run.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/base/ranks/communicator.h"

namespace trainer {

// The PCI addresses of the GPUs that this process may use, by number: "0000:1b:00.0". Empty where
// there are none. Uses none of them, so that no memory of theirs is taken.
std::vector<std::string> ListGpus();

struct GpuGroupOptions {
  Communicator* host = nullptr;  // sums numbers of the host; outlives the group
  std::function<void()> poll;    // goes on with the sums of `host` that have begun
  size_t bucket_floats = 1;      // slices are joined until they have so many numbers
  // MPI's sum over the ranks of numbers in the GPU's memory, done when it returns. It calls
  // `use_gpu` on the thread that calls MPI, before that. Empty where MPI takes no such memory.
  std::function<void(std::span<float> values, const std::function<void()>& use_gpu)> sum_by_mpi =
      nullptr;
};

// All take gradients from the memory of `device`, a GPU, which outlives them, and put the sums
// there. They work beside its computations: a bucket begins when the computations that made it are
// done, and its update when its sum is there. All else they leave to `host`. Every rank makes one
// at the same point of its calls.

// Copies buckets to page-locked memory of the host, where `host` sums them, and back.
std::unique_ptr<Communicator> MakeStagedGroup(const Device& device, const GpuGroupOptions& options);

// By NCCL, from GPU to GPU; `*note` is its version. Where a rank cannot, on all ranks null, and
// `*note` says why.
std::unique_ptr<Communicator> MakeNcclGroup(const Device& device, const GpuGroupOptions& options,
                                            std::string* note);

// By MPI, from GPU to GPU, while computations go on: where all ranks have a `sum_by_mpi`. Else on
// all ranks null, and `*note` says why.
std::unique_ptr<Communicator> MakeMpiGroup(const Device& device, const GpuGroupOptions& options,
                                           std::string* note);

}  // namespace trainer
