#pragma once
// The calls of the emulated cuDNN, the same for all directions: x, w and y are the forward tensors
// or their gradients.

#include "support/emulated_gpu/cudnn/cudnn_objects.h"

namespace emulated_gpu {

using Handle = CudnnTable::Handle;
using Tensor = CudnnTable::Tensor;
using Filter = CudnnTable::Filter;
using Conv = CudnnTable::Convolution;
using cudnn::AlgoPerf;

int ListAlgorithms(Direction direction, Handle handle, Tensor x, Filter w, Conv conv, Tensor y,
                   int requested, int* returned, AlgoPerf* results);
int SizeWorkspace(Direction direction, Handle handle, Tensor x, Filter w, Conv conv, Tensor y,
                  int algo, size_t* bytes);
// Waits for the measurement, and overwrites the result and the workspace.
int MeasureAlgorithms(Direction direction, Handle handle, Tensor x, Filter w, Conv conv, Tensor y,
                      const void* first, const void* second, void* result, int requested,
                      int* returned, AlgoPerf* results, void* workspace, size_t workspace_bytes);
int StartConvolution(Direction direction, Handle handle, const void* alpha, Tensor x, Filter w,
                     Conv conv, Tensor y, const void* first, const void* second, int algo,
                     void* workspace, size_t workspace_bytes, const void* beta, void* result);
int StartFused(Handle handle, const void* alpha1, Tensor x, const void* x_data, Filter w,
               const void* w_data, Conv conv, int algo, void* workspace, size_t workspace_bytes,
               const void* alpha2, Tensor z, const void* z_data, Tensor bias, const void* bias_data,
               CudnnTable::Activation activation, Tensor y, void* y_data);

}  // namespace emulated_gpu
