// cuDNN's table. Its calls name operands in an order that depends on the direction.

#include "support/emulated_gpu/cudnn/cudnn_calls.h"
#include "support/emulated_gpu/tables.h"

namespace emulated_gpu {
namespace {

constexpr Direction kForward = Direction::kForward, kData = Direction::kData,
                    kFilter = Direction::kFilter;

void FillForward(CudnnTable* table) {
  table->GetConvolutionForwardAlgorithm_v7 = [](Handle h, Tensor x, Filter w, Conv conv, Tensor y,
                                                int requested, int* returned, AlgoPerf* results) {
    return ListAlgorithms(kForward, h, x, w, conv, y, requested, returned, results);
  };
  table->GetConvolutionForwardWorkspaceSize = [](Handle h, Tensor x, Filter w, Conv conv, Tensor y,
                                                 int algo, size_t* bytes) {
    return SizeWorkspace(kForward, h, x, w, conv, y, algo, bytes);
  };
  table->FindConvolutionForwardAlgorithmEx =
      [](Handle h, Tensor x, const void* x_data, Filter w, const void* w_data, Conv conv, Tensor y,
         void* y_data, int requested, int* returned, AlgoPerf* results, void* space, size_t bytes) {
        return MeasureAlgorithms(kForward, h, x, w, conv, y, x_data, w_data, y_data, requested,
                                 returned, results, space, bytes);
      };
  table->ConvolutionForward = [](Handle h, const void* alpha, Tensor x, const void* x_data,
                                 Filter w, const void* w_data, Conv conv, int algo, void* space,
                                 size_t bytes, const void* beta, Tensor y, void* y_data) {
    return StartConvolution(kForward, h, alpha, x, w, conv, y, x_data, w_data, algo, space, bytes,
                            beta, y_data);
  };
  table->ConvolutionBiasActivationForward = StartFused;
}

void FillData(CudnnTable* table) {
  table->GetConvolutionBackwardDataAlgorithm_v7 = [](Handle h, Filter w, Tensor dy, Conv conv,
                                                     Tensor dx, int requested, int* returned,
                                                     AlgoPerf* results) {
    return ListAlgorithms(kData, h, dx, w, conv, dy, requested, returned, results);
  };
  table->GetConvolutionBackwardDataWorkspaceSize = [](Handle h, Filter w, Tensor dy, Conv conv,
                                                      Tensor dx, int algo, size_t* bytes) {
    return SizeWorkspace(kData, h, dx, w, conv, dy, algo, bytes);
  };
  table->FindConvolutionBackwardDataAlgorithmEx =
      [](Handle h, Filter w, const void* w_data, Tensor dy, const void* dy_data, Conv conv,
         Tensor dx, void* dx_data, int requested, int* returned, AlgoPerf* results, void* space,
         size_t bytes) {
        return MeasureAlgorithms(kData, h, dx, w, conv, dy, w_data, dy_data, dx_data, requested,
                                 returned, results, space, bytes);
      };
  table->ConvolutionBackwardData = [](Handle h, const void* alpha, Filter w, const void* w_data,
                                      Tensor dy, const void* dy_data, Conv conv, int algo,
                                      void* space, size_t bytes, const void* beta, Tensor dx,
                                      void* dx_data) {
    return StartConvolution(kData, h, alpha, dx, w, conv, dy, w_data, dy_data, algo, space, bytes,
                            beta, dx_data);
  };
}

void FillFilter(CudnnTable* table) {
  table->GetConvolutionBackwardFilterAlgorithm_v7 = [](Handle h, Tensor x, Tensor dy, Conv conv,
                                                       Filter dw, int requested, int* returned,
                                                       AlgoPerf* results) {
    return ListAlgorithms(kFilter, h, x, dw, conv, dy, requested, returned, results);
  };
  table->GetConvolutionBackwardFilterWorkspaceSize = [](Handle h, Tensor x, Tensor dy, Conv conv,
                                                        Filter dw, int algo, size_t* bytes) {
    return SizeWorkspace(kFilter, h, x, dw, conv, dy, algo, bytes);
  };
  table->FindConvolutionBackwardFilterAlgorithmEx =
      [](Handle h, Tensor x, const void* x_data, Tensor dy, const void* dy_data, Conv conv,
         Filter dw, void* dw_data, int requested, int* returned, AlgoPerf* results, void* space,
         size_t bytes) {
        return MeasureAlgorithms(kFilter, h, x, dw, conv, dy, x_data, dy_data, dw_data, requested,
                                 returned, results, space, bytes);
      };
  table->ConvolutionBackwardFilter = [](Handle h, const void* alpha, Tensor x, const void* x_data,
                                        Tensor dy, const void* dy_data, Conv conv, int algo,
                                        void* space, size_t bytes, const void* beta, Filter dw,
                                        void* dw_data) {
    return StartConvolution(kFilter, h, alpha, x, dw, conv, dy, x_data, dy_data, algo, space, bytes,
                            beta, dw_data);
  };
}

}  // namespace

const CudnnTable& TheCudnn() {
  static const CudnnTable table = [] {
    CudnnTable made = {};
    FillObjectCalls(&made);
    FillForward(&made);
    FillData(&made);
    FillFilter(&made);
    return made;
  }();
  return table;
}

}  // namespace emulated_gpu
