#pragma once
// The GPUs of this machine, and a Device that computes on one. A build without CUDA finds no GPU
// and reports the reason.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "trainer/backend/device/device.h"

namespace trainer {

class GpuMonitor;
class Communicator;

struct GpuInfo {
  int id = 0;
  std::string name, pci_bus;  // "NVIDIA H200", "0000:1b:00.0"
  int major = 0, minor = 0;   // compute capability
  int multiprocessors = 0;
  double clock_mhz = 0, memory_clock_mhz = 0;
  int memory_bus_bits = 0;
  size_t memory_bytes = 0, free_bytes = 0;
};

// The libraries, drivers and GPUs found on this machine. FindGpus never throws.
struct GpuSupport {
  bool built = false;           // the build contains GPU code
  std::string architectures;    // the kernels' targets: "75 80 86 89 90a, PTX"
  int driver = 0, runtime = 0;  // 1000 * major + 10 * minor; 0: not found
  // "13.1.0 in /usr/lib/...", or empty if the library was not found. The last two are optional:
  // NCCL is for several GPUs, NVML ("of driver 580.82.07") reports how busy a GPU is.
  std::string cublas, cudnn, nccl, nvml;
  std::vector<std::string> missing;  // one sentence each, which says what to do
  std::vector<GpuInfo> gpus;
};
// Returns what a run on a GPU can use on this machine, and what is missing.
GpuSupport FindGpus();

// Returns the PCI addresses of the GPUs that this process may use, by index: "0000:1b:00.0". Empty
// if there is no GPU. Creates no context on the GPUs and so takes none of their memory.
std::vector<std::string> ListGpus();

struct GpuOptions {
  int id = 0;
  bool tf32 = false;           // f32 products round their inputs to 10 bits of fraction
  bool deterministic = false;  // results repeat bit for bit
  bool graphs = true;          // capture passes as CUDA graphs: see device/graph_capture.h
  // The file that stores the convolution algorithms chosen by measuring, shared by all processes,
  // GPUs and nets; "": no file. `asked`: the user named the file and is told if it cannot be used.
  std::string algorithm_file = "";
  bool algorithm_file_asked = false;
};

// Creates a device that computes on GPU `options.id`. Throws kUnavailable if the GPU cannot be
// used; the message says what is missing or which GPUs exist.
std::unique_ptr<Device> MakeGpuDevice(const GpuOptions& options);

// Creates a monitor (base/process/gpu_reading.h) of the load of a device made by MakeGpuDevice; the
// monitor may outlive the device. Returns null and sets `*why` to a sentence if the driver's
// library (NVML, libnvidia-ml.so.1) is missing or does not know the GPU.
std::unique_ptr<GpuMonitor> MakeGpuMonitor(const Device& device, std::string* why);

struct GpuGroupOptions;
// The functions that src/backend/cuda registers from a static object; a build without CUDA
// registers none. They implement this header and device/gpu_communicator.h.
struct GpuBackend {
  GpuSupport (*find)() = nullptr;
  std::unique_ptr<Device> (*make)(const GpuOptions& options) = nullptr;
  std::vector<std::string> (*list)() = nullptr;
  std::unique_ptr<Communicator> (*make_staged_group)(const Device& device,
                                                     const GpuGroupOptions& options) = nullptr;
  std::unique_ptr<Communicator> (*make_nccl_group)(const Device& device,
                                                   const GpuGroupOptions& options,
                                                   std::string* note) = nullptr;
  std::unique_ptr<Communicator> (*make_mpi_group)(const Device& device,
                                                  const GpuGroupOptions& options,
                                                  std::string* note) = nullptr;
  std::unique_ptr<GpuMonitor> (*make_monitor)(const Device& device, std::string* why) = nullptr;
};
// Registers the functions; called before main().
void SetGpuBackend(const GpuBackend& backend);
// Returns the registered functions. Throws kUnavailable in a build without CUDA.
const GpuBackend& RequireGpuBackend();

}  // namespace trainer
