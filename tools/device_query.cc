#include <dnnl.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "device_flags.h"
#include "shared_flags.h"
#include "table.h"
#include "trainer/base/text.h"
#include "trainer/base/threads.h"
#include "verb.h"

namespace trainer {
namespace {

// The processor's name as Linux tells it, or "unknown".
std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return EscapeControl(line.substr(colon + 2));
  }
  return "unknown";
}

std::string OneDnnVersion() {
  const dnnl_version_t& version = *dnnl_version();
  const char* runtime = version.cpu_runtime == DNNL_RUNTIME_OMP   ? "OpenMP"
                        : version.cpu_runtime == DNNL_RUNTIME_TBB ? "TBB"
                        : version.cpu_runtime == DNNL_RUNTIME_SEQ ? "no"
                                                                  : "unknown";
  return Join(version.major, ".", version.minor, ".", version.patch, ", ", runtime, " threads");
}

class DeviceQuery final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "show the processor, threads and libraries in use",
        .usage = "trainer device_query [--gpu=LIST]",
        .text =
            "The number of threads follows OMP_NUM_THREADS or SLURM_CPUS_PER_TASK, the CPUs "
            "that this process may run on, and the CPU quota of its container.",
        .examples = "trainer device_query",
        .flags = {GpuFlag()},
    };
  }

  int Run(const Flags& flags) override {
    const DeviceChoice choice = ChooseDevice(flags);
    const std::unique_ptr<Device> device = MakeDevice(choice);
    const auto pages = static_cast<size_t>(sysconf(_SC_PHYS_PAGES));
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::cout << "device:     " << device->Describe() << "\n"
              << "processor:  " << ProcessorName() << "\n"
              << "threads:    " << DescribeThreads() << "\n"
              << "memory:     " << Bytes(pages * page) << "\n"
              << "oneDNN:     " << OneDnnVersion() << "\n"
              << "program:    trainer " << TRAINER_VERSION << ", " << kBuild << "\n"
              << "CUDA:       " << kCuda << "\n";
    return 0;
  }

 private:
#ifdef NDEBUG
  static constexpr const char* kBuild = "optimised build, GCC " __VERSION__;
#else
  static constexpr const char* kBuild = "debug build, GCC " __VERSION__;
#endif
#ifdef TRAINER_CUDA
  static constexpr const char* kCuda = "layers and rules are compiled for it, but it has no device";
#else
  static constexpr const char* kCuda = "no CUDA in this build";
#endif
};

const RegisterVerb<DeviceQuery> kDeviceQuery("device_query");

}  // namespace
}  // namespace trainer
