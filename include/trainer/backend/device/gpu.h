#pragma once
// The GPUs of this machine, and a Device that computes on one. In builds without CUDA there are
// none, and a reason why.

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

// What stands between this program and a GPU. Never throws.
struct GpuSupport {
  bool built = false;           // with the code for GPUs
  std::string architectures;    // that the kernels are compiled for: "75 80 86 89 90a, PTX"
  int driver = 0, runtime = 0;  // 1000 * major + 10 * minor; 0: there is none
  // "13.1.0 in /usr/lib/...", empty where it was not found. Nothing is missing without the last
  // two: NCCL is for several GPUs, NVML ("of driver 580.82.07") tells how busy a GPU is.
  std::string cublas, cudnn, nccl, nvml;
  std::vector<std::string> missing;  // one sentence each, with what to do
  std::vector<GpuInfo> gpus;
};
GpuSupport FindGpus();

struct GpuOptions {
  int id = 0;
  bool tf32 = false;           // products of f32 numbers rounded to 10 bits of fraction
  bool deterministic = false;  // repeat bit for bit
  bool graphs = true;          // record passes and play them again: see device/graph_capture.h
  // Where the algorithms of convolutions are kept that were chosen by measuring: one file for all
  // processes, GPUs and nets; "": nowhere. `asked`: the user named it, who is told of trouble.
  std::string algorithm_file = "";
  bool algorithm_file_asked = false;
};

// Throws kUnavailable where the GPU cannot be used: what is missing, or which GPUs there are.
std::unique_ptr<Device> MakeGpuDevice(const GpuOptions& options);

// How src/backend/cuda enters a program, by a static object; a build without it has none. The
// functions are those of this header, of device/gpu_communicator.h and of device/gpu_monitor.h.
struct GpuGroupOptions;
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
void SetGpuBackend(const GpuBackend& backend);

}  // namespace trainer
