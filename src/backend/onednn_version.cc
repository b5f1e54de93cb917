#include "trainer/backend/device/onednn_version.h"

#include <dnnl.h>

#include "trainer/base/text/text.h"

namespace trainer {

std::string OneDnnVersion() {
  const dnnl_version_t& version = *dnnl_version();
  const char* runtime = version.cpu_runtime == DNNL_RUNTIME_OMP   ? "OpenMP"
                        : version.cpu_runtime == DNNL_RUNTIME_TBB ? "TBB"
                        : version.cpu_runtime == DNNL_RUNTIME_SEQ ? "no"
                                                                  : "unknown";
  return Join(version.major, ".", version.minor, ".", version.patch, ", ", runtime, " threads");
}

}  // namespace trainer
