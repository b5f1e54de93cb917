#include "trainer/analysis/summary/device_summary.h"

#include "trainer/backend/device/onednn_version.h"
#include "trainer/base/process/host_info.h"
#include "trainer/base/process/program_info.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"

namespace trainer {
namespace {

// Returns "13.0" for 13000, or "none" for 0.
std::string CudaVersion(int version) {
  return version == 0 ? "none" : Join(version / 1000, ".", version % 1000 / 10);
}

std::string OrNone(const std::string& text) { return text.empty() ? "not found" : text; }

// Returns "name:   text", with the text wrapped in its own column.
std::string Line(const std::string& name, const std::string& text) {
  constexpr size_t kWidth = 12;
  std::string head = name + ":";
  head.resize(kWidth, ' ');
  return head + Wrap(EscapeControl(text), kWidth, kWidth) + "\n";
}

// Returns an empty line and a few lines about one GPU.
std::string GpuText(const GpuInfo& gpu) {
  std::string text = "\n";
  text += Line(Join("GPU ", gpu.id), Join(gpu.name, ", at ", gpu.pci_bus));
  text += Line("  memory", Join(Bytes(gpu.memory_bytes), ", ", Bytes(gpu.free_bytes), " free"));
  text += Line("  clocks",
               Join(Fixed(gpu.clock_mhz, 0), " MHz, memory ", Fixed(gpu.memory_clock_mhz, 0),
                    " MHz over ", gpu.memory_bus_bits, " bits"));
  text += Line("  compute", Join("capability ", gpu.major, ".", gpu.minor, ", ",
                                 gpu.multiprocessors, " multiprocessors"));
  return text;
}

Json GpuJson(const GpuInfo& gpu) {
  return Json::Object()
      .Set("id", gpu.id)
      .Set("name", gpu.name)
      .Set("pci_bus", gpu.pci_bus)
      .Set("capability", Join(gpu.major, ".", gpu.minor))
      .Set("multiprocessors", gpu.multiprocessors)
      .Set("clock_mhz", gpu.clock_mhz)
      .Set("memory_clock_mhz", gpu.memory_clock_mhz)
      .Set("memory_bus_bits", gpu.memory_bus_bits)
      .Set("memory_bytes", gpu.memory_bytes)
      .Set("free_bytes", gpu.free_bytes);
}

}  // namespace

std::string DeviceText(const Device& cpu, const GpuSupport& support) {
  std::string text;
  text += Line("device", cpu.Describe());
  text += Line("processor", ProcessorName());
  text += Line("threads", DescribeThreads());
  text += Line("memory", Bytes(InstalledMemory()));
  text += Line("oneDNN", OneDnnVersion());
  text += Line("program", Join("trainer ", ProgramVersion(), ", ", BuildKind()));
  if (support.built) {
    text += Line(
        "CUDA",
        Join("runtime ", CudaVersion(support.runtime),
             support.driver == 0 ? ", no driver" : ", driver for " + CudaVersion(support.driver),
             support.architectures.empty() ? "" : ", code for ", support.architectures));
    text += Line("cuBLAS", OrNone(support.cublas));
    text += Line("cuDNN", OrNone(support.cudnn));
    text += Line("NCCL", OrNone(support.nccl));
    text += Line("NVML", OrNone(support.nvml));
  }
  for (const std::string& missing : support.missing) {
    text += Line(support.built ? "missing" : "CUDA", missing);
  }
  for (const GpuInfo& gpu : support.gpus) text += GpuText(gpu);
  return text;
}

Json DeviceJson(const Device& cpu, const GpuSupport& support) {
  Json missing = Json::Array(), gpus = Json::Array();
  for (const std::string& sentence : support.missing) missing.Push(sentence);
  for (const GpuInfo& gpu : support.gpus) gpus.Push(GpuJson(gpu));
  return Json::Object()
      .Set("program", ProgramVersion())
      .Set("device", cpu.Describe())
      .Set("processor", ProcessorName())
      .Set("memory_bytes", InstalledMemory())
      .Set("onednn", OneDnnVersion())
      .Set("cuda", Json::Object()
                       .Set("built", support.built)
                       .Set("architectures", support.architectures)
                       .Set("driver", CudaVersion(support.driver))
                       .Set("runtime", CudaVersion(support.runtime))
                       .Set("cublas", support.cublas)
                       .Set("cudnn", support.cudnn)
                       .Set("nccl", support.nccl)
                       .Set("nvml", support.nvml)
                       .Set("missing", std::move(missing)))
      .Set("gpus", std::move(gpus));
}

}  // namespace trainer
