// NCCL between processes of this machine: the ranks share a block of memory. An operation is two
// pieces of work on its stream: the first copies the rank's numbers to the block, the second waits
// for all ranks to do so and adds the numbers in the order of the ranks. While it waits, the stream
// is blocked and other streams continue, as on a GPU.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/emulated_gpu/library.h"
#include "support/emulated_gpu/memory.h"
#include "support/emulated_gpu/stream.h"
#include "support/emulated_gpu/tables.h"
#include "trainer/base/text/text.h"

namespace {

constexpr int kMaxRanks = 8;
constexpr size_t kSlot = size_t{1} << 24;  // most floats of one operation

// Initially zero. Untouched pages take no memory.
struct Block {
  std::atomic<int> joined, left;
  std::atomic<bool> aborted;
  struct Rank {
    std::atomic<uint64_t> laid_out, added;  // operations
  } ranks[kMaxRanks];
  float slots[kMaxRanks][kSlot];
};

struct Id {
  int process, fd;
};

}  // namespace

struct ncclComm {
  Block* block = nullptr;
  int rank = 0, count = 0, device = 0;
  uint64_t begun = 0;  // operations
  bool live = true;
};

namespace emulated_gpu {
namespace {

using trainer::Join;
using trainer::cuda::Nccl;
using trainer::cuda::Stream;
namespace nccl = trainer::cuda::nccl;

// Communicators are never deleted: queued work may still use them.
Objects<ncclComm>& Comms() {
  static auto* const comms = new Objects<ncclComm>;
  return *comms;
}

class NcclCall : public LibraryCall {
 public:
  explicit NcclCall(const char* name)
      : LibraryCall(name, nccl::kSystemError, nccl::kUnhandledCudaError) {}
};

int RefuseCall(const std::string& sentence) {
  AddProblem(sentence);
  return nccl::kInvalidArgument;
}

int GetVersion(int* version) {
  *version = 22800;
  return 0;
}

const char* GetErrorString(int result) {
  return result == 0 ? "no error" : result == nccl::kRemoteError ? "remote process" : "an error";
}

int GetUniqueId(nccl::UniqueId* id) {
  const NcclCall call("ncclGetUniqueId");
  if (call.status() != 0) return call.status();
  const int fd = memfd_create("emulated_nccl", 0);  // open as long as the process lives
  if (fd < 0 || ftruncate(fd, sizeof(Block)) != 0) return nccl::kSystemError;
  const Id own = {getpid(), fd};
  std::memcpy(id->bytes, &own, sizeof(own));
  return 0;
}

Block* Open(const nccl::UniqueId& id) {
  Id from;
  std::memcpy(&from, id.bytes, sizeof(from));
  const int fd = open(Join("/proc/", from.process, "/fd/", from.fd).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* const at = mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<Block*>(at);
}

int CommInitRank(ncclComm** comm, int ranks, nccl::UniqueId id, int rank) {
  Block* block = nullptr;
  {
    const NcclCall call("ncclCommInitRank");
    *comm = nullptr;
    if (call.status() != 0) return call.status();
    if (ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks) {
      return RefuseCall(Join("ncclCommInitRank: rank ", rank, " of ", ranks));
    }
    block = Open(id);
    if (block == nullptr) return nccl::kSystemError;
    *comm = Comms().Make();
    (*comm)->block = block;
    (*comm)->rank = rank;
    (*comm)->count = ranks;
    (*comm)->device = CurrentDevice();
  }
  ++block->joined;
  for (int i = 0; i < 60'000 && block->joined < ranks; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return block->joined < ranks ? nccl::kSystemError : 0;
}

int End(ncclComm* comm, const char* name, bool aborted) {
  const std::scoped_lock lock(Mutex());
  if (!Comms().Has(comm) || !comm->live) return RefuseCall(Join(name, ": there is no such comm"));
  if (aborted) comm->block->aborted = true;
  comm->live = false;
  return 0;
}
int CommDestroy(ncclComm* comm) { return End(comm, "ncclCommDestroy", false); }
int CommAbort(ncclComm* comm) { return End(comm, "ncclCommAbort", true); }

int CommGetAsyncError(ncclComm* comm, int* result) {
  const NcclCall call("ncclCommGetAsyncError");
  *result = call.status() != 0 || comm->block->aborted ? nccl::kRemoteError : 0;
  return 0;
}

// Returns whether all ranks have reached operation `number` in `what`, or one has aborted.
bool AllHave(const ncclComm& comm, std::atomic<uint64_t> Block::Rank::*what, uint64_t number) {
  if (comm.block->aborted) return true;
  for (int r = 0; r < comm.count; ++r) {
    if (comm.block->ranks[r].*what < number) return false;
  }
  return true;
}

void AddAll(const ncclComm& comm, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    float sum = comm.block->slots[0][i];
    for (int r = 1; r < comm.count; ++r) sum += comm.block->slots[r][i];
    to[i] = sum;
  }
}

int AllReduce(const void* from, void* to, size_t count, int type, int operation, ncclComm* comm,
              Stream stream) {
  const NcclCall call("ncclAllReduce");
  if (call.status() != 0) return call.status();
  if (!Comms().Has(comm) || !comm->live) return RefuseCall("ncclAllReduce: there is no such comm");
  if (CheckStream(stream, "ncclAllReduce") != 0) return nccl::kInvalidArgument;
  if (stream->device != comm->device) return RefuseCall("ncclAllReduce: a stream of another GPU");
  if (CurrentDevice() != comm->device) return RefuseCall("ncclAllReduce: another GPU is current");
  if (type != nccl::kFloat32 || operation != nccl::kSum || count > kSlot) {
    return RefuseCall(Join("ncclAllReduce: type ", type, ", operation ", operation, ", ", count));
  }
  const size_t bytes = count * sizeof(float);
  if (!IsOperand(comm->device, from, bytes, "ncclAllReduce") ||
      !IsOperand(comm->device, to, bytes, "ncclAllReduce")) {
    return nccl::kInvalidArgument;
  }
  const uint64_t number = ++comm->begun;
  const unsigned devices = 1u << comm->device;
  Queue(stream, {.ready = [=] { return AllHave(*comm, &Block::Rank::added, number - 1); },
                 .run =
                     [=] {
                       Block::Rank& own = comm->block->ranks[comm->rank];
                       std::memcpy(comm->block->slots[comm->rank], from, bytes);
                       own.laid_out = number;
                     },
                 .devices = devices});
  Queue(stream, {.ready = [=] { return AllHave(*comm, &Block::Rank::laid_out, number); },
                 .run =
                     [=] {
                       if (comm->block->aborted) return;
                       AddAll(*comm, static_cast<float*>(to), count);
                       comm->block->ranks[comm->rank].added = number;
                     },
                 .devices = devices});
  return 0;
}

constexpr Nccl kNccl = {.GetVersion = GetVersion,
                        .GetErrorString = GetErrorString,
                        .GetUniqueId = GetUniqueId,
                        .CommInitRank = CommInitRank,
                        .CommDestroy = CommDestroy,
                        .CommAbort = CommAbort,
                        .CommGetAsyncError = CommGetAsyncError,
                        .AllReduce = AllReduce};

}  // namespace

const Nccl& TheNccl() { return kNccl; }

}  // namespace emulated_gpu
