// The check of kernel launches (backend/loops/launch.h), by the runtime that this program is linked
// with.

#include <cuda_runtime_api.h>

#include "cuda/bindings/errors.h"

namespace trainer {

void CheckLaunch();

// Reports launches that are refused at once. The next call that waits reports later failures.
void CheckLaunch() { cuda::Check(static_cast<int>(cudaGetLastError()), "starting a kernel on it"); }

}  // namespace trainer
