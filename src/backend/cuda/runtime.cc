#include "cuda/runtime.h"

namespace trainer::cuda {
namespace {

const Runtime*& Registered() {
  static const Runtime* runtime = nullptr;
  return runtime;
}

}  // namespace

const Runtime* GetRuntime() { return Registered(); }
void SetRuntime(const Runtime* runtime) { Registered() = runtime; }

}  // namespace trainer::cuda
