#pragma once
// The calls of NCCL that the backend uses, as a table: filled from the library that OpenNccl opens,
// or by the emulated GPU of the tests. Names, meanings and numbers are those of the NCCL API,
// version 2, without its prefix; enums are passed as int. No header of NCCL is needed to compile
// its users; constants_check_linked.cc compares.

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
  // Of one process, which hands it to the others.
  int (*GetUniqueId)(nccl::UniqueId* id);
  // Returns when all ranks have called it; the current GPU is the rank's.
  int (*CommInitRank)(nccl::Comm* comm, int ranks, nccl::UniqueId id, int rank);
  int (*CommDestroy)(nccl::Comm comm);
  // Ends operations under way, too.
  int (*CommAbort)(nccl::Comm comm);
  // What went wrong since, here or elsewhere.
  int (*CommGetAsyncError)(nccl::Comm comm, int* result);
  int (*AllReduce)(const void* from, void* to, size_t count, int type, int operation,
                   nccl::Comm comm, Stream stream);
};

// Opens NCCL where that was not tried yet. "" where GetNccl() is there then, and `*description`
// says which it is: "2.28.3 in /usr/lib/x86_64-linux-gnu"; else a sentence.
std::string OpenNccl(std::string* description);

// Null while the library is not open.
const Nccl* GetNccl();
// In tests, in place of a library.
void SetNccl(const Nccl* table);

}  // namespace trainer::cuda
