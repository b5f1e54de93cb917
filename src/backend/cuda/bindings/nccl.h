#pragma once
// The NCCL calls that the backend uses, as a table of functions. It is filled from the library that
// OpenNccl opens or by the emulated GPU of the tests. Names, semantics and values follow the NCCL
// API, version 2, without its prefix; enums are passed as int. Users need no NCCL headers;
// constants_check_linked.cc compares the values with them.

#include <cstddef>
#include <string>

#include "cuda/bindings/runtime.h"

struct ncclComm;

namespace trainer::cuda {
namespace nccl {

// ncclResult_t
inline constexpr int kSuccess = 0, kUnhandledCudaError = 1, kSystemError = 2, kInternalError = 3,
                     kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;
// ncclDataType_t, ncclRedOp_t
inline constexpr int kFloat32 = 7, kSum = 0;

struct UniqueId {
  char bytes[128] = {};
};
using Comm = ncclComm*;

}  // namespace nccl

struct Nccl {
  int (*GetVersion)(int* version);  // 10000 * major + 100 * minor + patch
  const char* (*GetErrorString)(int result);
  // Called by one process, which sends the id to the others.
  int (*GetUniqueId)(nccl::UniqueId* id);
  // Returns when all ranks have called it; the rank uses the current GPU.
  int (*CommInitRank)(nccl::Comm* comm, int ranks, nccl::UniqueId id, int rank);
  int (*CommDestroy)(nccl::Comm comm);
  // Also aborts unfinished operations.
  int (*CommAbort)(nccl::Comm comm);
  // Sets `result` to an error that has occurred since, on this rank or another.
  int (*CommGetAsyncError)(nccl::Comm comm, int* result);
  int (*AllReduce)(const void* from, void* to, size_t count, int type, int operation,
                   nccl::Comm comm, Stream stream);
};

// Opens NCCL unless that was tried before. Returns "" if GetNccl() is available, with its version
// in `*description`: "2.28.3 in /usr/lib/x86_64-linux-gnu"; otherwise returns a sentence with the
// reason.
std::string OpenNccl(std::string* description);

// Returns the table of NCCL; null while the library is not open.
const Nccl* GetNccl();
// Sets the table in tests, instead of a library.
void SetNccl(const Nccl* table);

}  // namespace trainer::cuda
