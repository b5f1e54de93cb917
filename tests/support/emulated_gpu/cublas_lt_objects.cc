// Objects of the emulated cuBLASLt, and its table.

#include <algorithm>
#include <memory>
#include <utility>

#include "support/emulated_gpu/cublas_lt.h"
#include "support/emulated_gpu/tables.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

using trainer::Join;

struct State {
  Objects<lt::Context> contexts;
  Objects<lt::MatmulDesc> descs;
  Objects<lt::MatrixLayout> layouts;
  Objects<lt::MatmulPreference> preferences;
};
State& Get() {
  static State* const state = new State;
  return *state;
}

LibraryCall Begin(const char* name) {
  return LibraryCall(name, lt::kNotSupported, lt::kExecutionFailed);
}

size_t GetVersion() { return TheOptions().cublas_lt_version; }

const char* GetStatusString(int status) {
  switch (status) {
    case lt::kSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case lt::kNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case lt::kAllocFailed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case lt::kInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case lt::kArchMismatch:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case lt::kExecutionFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case lt::kInternalError:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case lt::kNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "unknown status";
  }
}

int Create(lt::Handle* handle) {
  const LibraryCall call = Begin("cublasLtCreate");
  *handle = nullptr;
  if (call.status() != 0) return call.status();
  *handle = Get().contexts.Make();
  (*handle)->device = CurrentDevice();
  return 0;
}

// Destroys an object even if the device is broken.
template <class T>
int Destroy(Objects<T>& objects, T* object, const char* name) {
  const LibraryCall call = Begin(name);
  if (objects.Destroy(object)) return call.status();
  AddProblem(Join(name, " of what the library did not make, or of what is destroyed"));
  return lt::kInvalidValue;
}

int Destroy(lt::Handle handle) { return Destroy(Get().contexts, handle, "cublasLtDestroy"); }

int MatmulDescCreate(lt::MatmulDesc** desc, int compute_type, int scale_type) {
  const LibraryCall call = Begin("cublasLtMatmulDescCreate");
  *desc = nullptr;
  if (call.status() != 0) return call.status();
  *desc = Get().descs.Make();
  (*desc)->compute_type = compute_type;
  (*desc)->scale_type = scale_type;
  return 0;
}

int MatmulDescDestroy(lt::MatmulDesc* desc) {
  return Destroy(Get().descs, desc, "cublasLtMatmulDescDestroy");
}

template <class T>
int Set(T& to, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return lt::kInvalidValue;
  std::memcpy(&to, value, bytes);
  return 0;
}

int MatmulDescSetAttribute(lt::MatmulDesc* desc, int attribute, const void* value, size_t bytes) {
  const LibraryCall call = Begin("cublasLtMatmulDescSetAttribute");
  if (call.status() != 0) return call.status();
  if (!Get().descs.Has(desc)) return lt::kInvalidValue;
  switch (attribute) {
    case lt::kDescTransA:
      return Set(desc->transpose_a, value, bytes);
    case lt::kDescTransB:
      return Set(desc->transpose_b, value, bytes);
    case lt::kDescEpilogue:
      return Set(desc->epilogue, value, bytes);
    case lt::kDescBiasPointer:
      return Set(desc->bias, value, bytes);
    case lt::kDescBiasDataType:
      return Set(desc->bias_type, value, bytes);
    default:
      return lt::kInvalidValue;
  }
}

int MatrixLayoutCreate(lt::MatrixLayout** layout, int type, uint64_t rows, uint64_t columns,
                       int64_t leading) {
  const LibraryCall call = Begin("cublasLtMatrixLayoutCreate");
  *layout = nullptr;
  if (call.status() != 0) return call.status();
  *layout = Get().layouts.Make();
  **layout = {type, rows, columns, leading};
  return 0;
}

int MatrixLayoutDestroy(lt::MatrixLayout* layout) {
  return Destroy(Get().layouts, layout, "cublasLtMatrixLayoutDestroy");
}

int MatmulPreferenceCreate(lt::MatmulPreference** preference) {
  const LibraryCall call = Begin("cublasLtMatmulPreferenceCreate");
  *preference = call.status() == 0 ? Get().preferences.Make() : nullptr;
  return call.status();
}

int MatmulPreferenceDestroy(lt::MatmulPreference* preference) {
  return Destroy(Get().preferences, preference, "cublasLtMatmulPreferenceDestroy");
}

int MatmulPreferenceSetAttribute(lt::MatmulPreference* preference, int attribute, const void* value,
                                 size_t bytes) {
  const LibraryCall call = Begin("cublasLtMatmulPreferenceSetAttribute");
  if (call.status() != 0) return call.status();
  if (!Get().preferences.Has(preference)) return lt::kInvalidValue;
  if (attribute == lt::kPrefMaxWorkspaceBytes) return Set(preference->workspace, value, bytes);
  if (attribute == lt::kPrefReductionSchemeMask) return Set(preference->reductions, value, bytes);
  if (attribute < lt::kPrefMinAlignmentABytes || attribute > lt::kPrefMinAlignmentDBytes) {
    return lt::kInvalidValue;
  }
  return Set(preference->alignment[attribute - lt::kPrefMinAlignmentABytes], value, bytes);
}

bool Read(const lt::MatrixLayout* from, Layout* to) {
  constexpr std::pair<int, trainer::DType> kTypes[] = {{lt::kReal32F, trainer::DType::kF32},
                                                       {lt::kReal16F, trainer::DType::kF16},
                                                       {lt::kReal16BF, trainer::DType::kBF16}};
  if (!Get().layouts.Has(from)) return false;
  const auto* const type =
      std::ranges::find(kTypes, from->type, &std::pair<int, trainer::DType>::first);
  if (type == std::end(kTypes)) return false;
  *to = {type->second, static_cast<int64_t>(from->rows), static_cast<int64_t>(from->columns),
         from->leading};
  return to->rows > 0 && to->columns > 0 && to->leading >= to->rows;
}

}  // namespace

bool IsLive(const lt::MatmulPreference* preference) { return Get().preferences.Has(preference); }

int Describe(lt::Handle handle, const lt::MatmulDesc* desc, const lt::MatrixLayout* a,
             const lt::MatrixLayout* b, const lt::MatrixLayout* c, const lt::MatrixLayout* d,
             Product* product) {
  if (!Get().contexts.Has(handle)) return lt::kNotInitialized;
  if (!IsCurrent(handle->device, "cuBLASLt")) return lt::kExecutionFailed;
  if (!Get().descs.Has(desc) || !Read(a, &product->a) || !Read(b, &product->b) ||
      !Read(c, &product->c) || !Read(d, &product->d)) {
    return lt::kInvalidValue;
  }
  Product& p = *product;
  p.transpose_a = desc->transpose_a == lt::kOpT;
  p.transpose_b = desc->transpose_b == lt::kOpT;
  p.tf32 = desc->compute_type == lt::kCompute32FFastTf32;
  const int64_t rows = p.transpose_a ? p.a.columns : p.a.rows;
  const int64_t depth = p.transpose_a ? p.a.rows : p.a.columns;
  const int64_t columns = p.transpose_b ? p.b.rows : p.b.columns;
  const bool fits = depth == (p.transpose_b ? p.b.columns : p.b.rows) && p.d.rows == rows &&
                    p.d.columns == columns && p.c.rows == rows && p.c.columns == columns;
  if (!fits) return lt::kInvalidValue;
  const bool half = p.a.type != trainer::DType::kF32, bf16 = p.a.type == trainer::DType::kBF16;
  const DeviceOptions& gpu = OptionsOf(handle->device);
  const bool takes = p.a.type == p.b.type && p.c.type == p.d.type &&
                     (p.d.type == p.a.type || (half && p.d.type == trainer::DType::kF32)) &&
                     desc->scale_type == lt::kReal32F && (gpu.major >= 8 || (!bf16 && !p.tf32)) &&
                     (desc->compute_type == lt::kCompute32F || (p.tf32 && !half));
  if (!takes) return lt::kNotSupported;
  if (desc->epilogue == lt::kEpilogueDefault) return 0;
  if (desc->epilogue != lt::kEpilogueBias) return lt::kNotSupported;
  // The bias has one number of the result's type per row. 16-bit types are not emulated, because no
  // caller uses them.
  const bool same = desc->bias_type == -1 || desc->bias_type == d->type;
  return same && p.d.type == trainer::DType::kF32 ? 0 : lt::kNotSupported;
}

const trainer::cuda::CublasLt& TheCublasLt() {
  static const trainer::cuda::CublasLt table = {GetVersion,
                                                GetStatusString,
                                                Create,
                                                Destroy,
                                                MatmulDescCreate,
                                                MatmulDescDestroy,
                                                MatmulDescSetAttribute,
                                                MatrixLayoutCreate,
                                                MatrixLayoutDestroy,
                                                MatmulPreferenceCreate,
                                                MatmulPreferenceDestroy,
                                                MatmulPreferenceSetAttribute,
                                                FindAlgorithms,
                                                StartProduct};
  return table;
}

}  // namespace emulated_gpu
