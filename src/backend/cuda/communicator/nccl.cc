// Sums the gradients of GPUs with NCCL.

#include "cuda/bindings/nccl.h"

#include <deque>
#include <thread>

#include "cuda/communicator/device_communicator.h"
#include "cuda/stream.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

// Returns the message for a call of NCCL that has failed with `result`.
std::string TextOf(const char* call, int result) {
  return Join(call, " failed: ", GetNccl()->GetErrorString(result), " (status ", result,
              "; NCCL_DEBUG=INFO shows more)");
}

// Throws kPeerLost unless `result` is kSuccess.
void CheckNccl(const char* call, int result) {
  if (result != nccl::kSuccess) throw Error(ErrorCode::kPeerLost, TextOf(call, result));
}

// Owns a communicator of NCCL.
class CommunicatorHandle {
 public:
  explicit CommunicatorHandle(nccl::Comm comm) : comm_(comm) {}
  // Aborts if a sum is unfinished: a rank has failed, and waiting for the sum would not end.
  ~CommunicatorHandle() { done_ ? GetNccl()->CommDestroy(comm_) : GetNccl()->CommAbort(comm_); }
  CommunicatorHandle(const CommunicatorHandle&) = delete;
  CommunicatorHandle& operator=(const CommunicatorHandle&) = delete;

  // Says whether all sums that were begun are done.
  void SetDone(bool done) { done_ = done; }
  // Queues the sum of `values` over all ranks, in place.
  void StartSum(std::span<float> values, Stream stream) {
    CheckNccl("ncclAllReduce", GetNccl()->AllReduce(values.data(), values.data(), values.size(),
                                                    nccl::kFloat32, nccl::kSum, comm_, stream));
  }
  // Throws kPeerLost if a sum has failed, here or on another rank.
  void ThrowIfFailed() {
    int result = nccl::kSuccess;
    CheckNccl("ncclCommGetAsyncError", GetNccl()->CommGetAsyncError(comm_, &result));
    if (result != nccl::kInProgress) CheckNccl("a sum of gradients by NCCL", result);
  }

 private:
  nccl::Comm comm_;
  bool done_ = true;
};

// Sums buckets on a stream of their own, in the order of their calls.
class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(const CudaDevice& device, const GpuGroupOptions& options, nccl::Comm comm)
      : DeviceCommunicator(device, options), comm_(comm) {}

  std::string WhyNotTreeOrder() const override {
    return "NCCL chooses the order of sums itself; use --exchange=host";
  }

 protected:
  // Queues the sum after the bucket's computations.
  void Begin(size_t i) override {
    if (i >= summed_.size()) summed_.emplace_back();
    comm_.SetDone(false);
    met_ = false;
    computed(i).MakeWait(queue_.get());
    comm_.StartSum(buckets()[i], queue_.get());
    summed_[i].Record(queue_.get());
  }

  // All ranks meet in a host barrier after they have begun their sums and before the host waits for
  // its GPU. A rank that died or hangs before that is then detected in the host's group, which can
  // report it.
  void Finish(size_t i) override {
    if (!met_) {
      host().Barrier();
      met_ = true;
    }
    summed_[i].MakeWait(device().stream());
    if (i + 1 < buckets().size()) return;
    while (!summed_[i].IsReached()) {
      comm_.ThrowIfFailed();
      std::this_thread::yield();
    }
    comm_.SetDone(true);
  }

  void BeforeHost() override { met_ = true; }

 private:
  bool met_ = false;  // whether the ranks met since the last sum began
  std::deque<StreamEvent> summed_;
  OwnedStream queue_{"making a queue of sums (cudaStreamCreate)"};
  CommunicatorHandle comm_;  // last: it must end before the stream, which could wait for ever
};

// Broadcasts rank 0's id, one byte per float. Returns false on all ranks if rank 0 could not create
// an id; rank 0 then sets `*why`.
bool ShareId(Communicator& host, nccl::UniqueId* id, std::string* why) {
  int result = nccl::kSuccess;
  if (host.rank().rank == 0) result = GetNccl()->GetUniqueId(id);
  std::vector<float> numbers(sizeof(id->bytes));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(static_cast<unsigned char>(id->bytes[i]));
  }
  host.Broadcast(numbers);
  for (size_t i = 0; i < numbers.size(); ++i) id->bytes[i] = static_cast<char>(numbers[i]);
  if (result != nccl::kSuccess) *why = TextOf("ncclGetUniqueId", result);
  return IsZeroOnAll(host, static_cast<float>(result));
}

}  // namespace

std::unique_ptr<Communicator> MakeNccl(const Device& device, const GpuGroupOptions& options,
                                       std::string* note) {
  const auto& gpu = dynamic_cast<const CudaDevice&>(device);
  Communicator& host = *options.host;
  gpu.Use();
  std::string version, why = OpenNccl(&version);
  nccl::UniqueId id;
  *note = why.empty() ? "another rank cannot use NCCL" : why;
  if (!IsZeroOnAll(host, why.empty() ? 0.0f : 1.0f) || !ShareId(host, &id, note)) return nullptr;
  nccl::Comm comm = nullptr;
  const int result = GetNccl()->CommInitRank(&comm, host.rank().size, id, host.rank().rank);
  if (result != nccl::kSuccess) *note = TextOf("ncclCommInitRank", result);
  if (!IsZeroOnAll(host, result == nccl::kSuccess ? 0.0f : 1.0f)) {
    if (result == nccl::kSuccess) GetNccl()->CommAbort(comm);
    return nullptr;
  }
  *note = version;
  return std::make_unique<NcclCommunicator>(gpu, options, comm);
}

}  // namespace trainer::cuda
