#include "trainer/backend/device/gpu_communicator.h"

#include "trainer/backend/device/gpu.h"

namespace trainer {

std::unique_ptr<Communicator> MakeStagedGroup(const Device& device,
                                              const GpuGroupOptions& options) {
  return RequireGpuBackend().make_staged_group(device, options);
}

std::unique_ptr<Communicator> MakeNcclGroup(const Device& device, const GpuGroupOptions& options,
                                            std::string* note) {
  return RequireGpuBackend().make_nccl_group(device, options, note);
}

std::unique_ptr<Communicator> MakeMpiGroup(const Device& device, const GpuGroupOptions& options,
                                           std::string* note) {
  return RequireGpuBackend().make_mpi_group(device, options, note);
}

}  // namespace trainer
