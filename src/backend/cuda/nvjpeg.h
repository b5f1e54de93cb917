#pragma once
// The calls of nvJPEG that the backend uses, as a table: filled from the library, or by the
// emulated GPU of the tests. Names, meanings and numbers are those of NVIDIA's API without its
// prefix; results are nvjpegStatus_t as int.

#include <cstddef>
#include <string>

#include "cuda/runtime.h"

namespace trainer::cuda {
namespace nvjpeg {

inline constexpr int kSuccess = 0, kInvalidParameter = 2, kBadJpeg = 3, kJpegNotSupported = 4,
                     kAllocatorFailure = 5, kExecutionFailed = 6, kArchMismatch = 7;
// nvjpegBackend_t, nvjpegOutputFormat_t, libraryPropertyType
inline constexpr int kGpuHybrid = 2, kHardware = 3;
inline constexpr int kOutputY = 2, kOutputBgr = 4;
inline constexpr int kMajor = 0, kMinor = 1, kPatch = 2;
// Chroma of half size is interpolated, as libjpeg does; since 12.1.
inline constexpr unsigned kInterpolate = 32;
inline constexpr int kMostPlanes = 4;

struct HandleObject;
struct StateObject;
using Handle = HandleObject*;
using State = StateObject*;
struct Image {
  unsigned char* channel[kMostPlanes];
  size_t pitch[kMostPlanes];
};

}  // namespace nvjpeg

struct Nvjpeg {
  int (*GetProperty)(int type, int* value);
  // The allocators are null: its own.
  int (*CreateEx)(int backend, void* device_allocator, void* pinned_allocator, unsigned flags,
                  nvjpeg::Handle* handle);
  int (*Destroy)(nvjpeg::Handle handle);
  int (*JpegStateCreate)(nvjpeg::Handle handle, nvjpeg::State* state);
  int (*JpegStateDestroy)(nvjpeg::State state);
  int (*DecodeBatchedInitialize)(nvjpeg::Handle handle, nvjpeg::State state, int pictures,
                                 int most_cpu_threads, int output);
  int (*DecodeBatched)(nvjpeg::Handle handle, nvjpeg::State state, const unsigned char* const* data,
                       const size_t* lengths, nvjpeg::Image* to, Stream stream);
};

// Opened at the first call; null where it is not there, with one sentence of what to do.
const Nvjpeg* GetNvjpeg(std::string* why);
// "13.0.1 in /usr/lib/...", or "" where it is of no use.
std::string DescribeNvjpeg();
// In tests, in place of the library; null: not there.
void SetNvjpeg(const Nvjpeg* table);

}  // namespace trainer::cuda
