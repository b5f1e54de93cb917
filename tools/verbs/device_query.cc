#include <iostream>

#include "flag_groups.h"
#include "trainer/backend/gpu.h"
#include "trainer/backend/onednn_version.h"
#include "trainer/base/process/host_info.h"
#include "trainer/base/process/program_info.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/cli/verb.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

// "13.0", or "none"
std::string CudaVersion(int version) {
  return version == 0 ? "none" : Join(version / 1000, ".", version % 1000 / 10);
}

std::string OrNone(const std::string& text) { return text.empty() ? "not found" : text; }

// Lines "name:   text", the text wrapped behind the names.
class Lines {
 public:
  static void Add(const std::string& name, const std::string& text) {
    constexpr size_t kWidth = 12;
    std::string head = name + ":";
    head.resize(kWidth, ' ');
    std::cout << head << Wrap(EscapeControl(text), kWidth, kWidth) << "\n";
  }
};

void PrintGpu(const GpuInfo& gpu) {
  std::cout << "\n";
  Lines::Add(Join("GPU ", gpu.id), Join(gpu.name, ", at ", gpu.pci_bus));
  Lines::Add("  memory", Join(Bytes(gpu.memory_bytes), ", ", Bytes(gpu.free_bytes), " free"));
  Lines::Add("  clocks",
             Join(Fixed(gpu.clock_mhz, 0), " MHz, memory ", Fixed(gpu.memory_clock_mhz, 0),
                  " MHz over ", gpu.memory_bus_bits, " bits"));
  Lines::Add("  compute", Join("capability ", gpu.major, ".", gpu.minor, ", ", gpu.multiprocessors,
                               " multiprocessors"));
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

// With --gpu that one alone.
GpuSupport SupportOf(const std::optional<int>& gpu) {
  GpuSupport support = FindGpus();
  if (!gpu) return support;
  std::erase_if(support.gpus, [&](const GpuInfo& info) { return info.id != *gpu; });
  if (support.gpus.empty()) MakeGpuDevice({.id = *gpu});  // says which there are
  return support;
}

void Print(const Device& cpu, const GpuSupport& support) {
  Lines::Add("device", cpu.Describe());
  Lines::Add("processor", ProcessorName());
  Lines::Add("threads", DescribeThreads());
  Lines::Add("memory", Bytes(InstalledMemory()));
  Lines::Add("oneDNN", OneDnnVersion());
  Lines::Add("program", Join("trainer ", TRAINER_VERSION, ", ", BuildKind()));
  if (support.built) {
    Lines::Add(
        "CUDA",
        Join("runtime ", CudaVersion(support.runtime),
             support.driver == 0 ? ", no driver" : ", driver for " + CudaVersion(support.driver),
             support.architectures.empty() ? "" : ", code for ", support.architectures));
    Lines::Add("cuBLAS", OrNone(support.cublas));
    Lines::Add("cuDNN", OrNone(support.cudnn));
    Lines::Add("NCCL", OrNone(support.nccl));
    Lines::Add("NVML", OrNone(support.nvml));
  }
  for (const std::string& missing : support.missing) {
    Lines::Add(support.built ? "missing" : "CUDA", missing);
  }
  for (const GpuInfo& gpu : support.gpus) PrintGpu(gpu);
}

Json ToJson(const Device& cpu, const GpuSupport& support) {
  Json missing = Json::Array(), gpus = Json::Array();
  for (const std::string& sentence : support.missing) missing.Push(sentence);
  for (const GpuInfo& gpu : support.gpus) gpus.Push(GpuJson(gpu));
  return Json::Object()
      .Set("program", TRAINER_VERSION)
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

class DeviceQuery final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&device_.gpu, "gpu", "ID",
               "show this GPU only; exits with code 69 if it cannot be used");
    DeclareJson(flags, &json_);
  }

  int Run() override {
    const GpuSupport support = SupportOf(RequestedGpu(device_));
    const std::unique_ptr<Device> cpu = MakeDevice();
    if (json_) {
      std::cout << ToJson(*cpu, support).ToString();
    } else {
      Print(*cpu, support);
    }
    return 0;
  }

 private:
  DeviceOptions device_;
  bool json_ = false;
};

const RegisterVerb<DeviceQuery> kDeviceQuery("device_query");

}  // namespace
}  // namespace trainer
