// Sums the gradients of GPUs with MPI, in GPU memory.

#include <thread>

#include "cuda/communicator/device_communicator.h"
#include "cuda/stream.h"

namespace trainer::cuda {
namespace {

// Finish sums a bucket once the computations that produced it are done; later computations continue
// meanwhile.
class GpuMpiCommunicator final : public DeviceCommunicator {
 public:
  using DeviceCommunicator::DeviceCommunicator;

  std::string WhyNotTreeOrder() const override {
    return "MPI chooses the order of sums itself; use --exchange=host";
  }

 protected:
  // Begins nothing: MPI sums in Finish.
  void Begin(size_t) override { met_ = false; }

  // All ranks meet in a host barrier before MPI waits for them. A rank that died or hangs before
  // that is then detected in the host's group, which can report it.
  void Finish(size_t i) override {
    if (!met_) {
      host().Barrier();
      met_ = true;
    }
    while (!computed(i).IsReached()) {
      Poll();
      std::this_thread::yield();
    }
    options().sum_by_mpi(buckets()[i], [this] { device().Use(); });
  }

  void BeforeHost() override { met_ = true; }

 private:
  bool met_ = false;  // whether the ranks met since the last bucket began
};

}  // namespace

std::unique_ptr<Communicator> MakeMpi(const Device& device, const GpuGroupOptions& options,
                                      std::string* note) {
  const auto& gpu = dynamic_cast<const CudaDevice&>(device);
  const bool can = options.sum_by_mpi != nullptr;
  *note = can ? "the MPI library of another rank is not CUDA-aware"
              : "there is no CUDA-aware MPI library";
  if (!IsZeroOnAll(*options.host, can ? 0.0f : 1.0f)) return nullptr;
  *note = "in GPU memory";
  gpu.Use();
  return std::make_unique<GpuMpiCommunicator>(gpu, options);
}

}  // namespace trainer::cuda
