// Compares this project's convolution kernels with the best that oneDNN does by itself, for the
// shapes of models/ in which they are chosen. Takes the best of some alternating runs.
//
//   conv_kernels [--batch=64] [folders of models/...]
//
// A row is a shape and a direction; `gain` is the library's time over the own kernel's, so the
// kernel loses below 1. The sums at the end weigh each shape with the number of its layers.

#include "conv_kernels.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "bench/kernels/zoo_convs.h"
#include "cpu/conv/onednn_kernels.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Holds device memory, all ones.
class Numbers {
 public:
  Numbers(const Device& device, int64_t count, DType dtype)
      : device_(device), data_(device.Allocate(static_cast<size_t>(count) * SizeOf(dtype) + 64)) {
    DispatchDtype(dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      for (int64_t i = 0; i < count; ++i) Store(static_cast<T*>(data_)[i], 1.0f);
    });
  }
  ~Numbers() { device_.Free(data_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  void* data() const { return data_; }
  float* f32() const { return static_cast<float*>(data_); }

 private:
  const Device& device_;
  void* data_;
};

struct Operands {
  Operands(const Device& device, const ConvDesc& desc)
      : x(device, desc.InShape().Count(), desc.dtype),
        y(device, desc.OutShape().Count(), desc.dtype),
        weight(device, desc.WeightShape().Count(), DType::kF32),
        bias(device, desc.out_channels, DType::kF32) {}
  Numbers x, y, weight, bias;
};

void Run(ConvForward& step, const Operands& o, std::span<std::byte> scratch) {
  step.Run(o.x.data(), o.weight.f32(), o.bias.f32(), o.y.data(), scratch);
}
void Run(ConvBackwardData& step, const Operands& o, std::span<std::byte> scratch) {
  step.Run(o.y.data(), o.weight.f32(), o.x.data(), scratch);
}
void Run(ConvBackwardWeight& step, const Operands& o, std::span<std::byte> scratch) {
  step.Run(o.x.data(), o.y.data(), o.weight.f32(), o.bias.f32(), scratch);
}

double Seconds(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns each step's best milliseconds in alternating runs, a third of a second per step.
template <class Step>
std::vector<double> BestMs(const Device& device, const std::vector<std::unique_ptr<Step>>& steps,
                           const Operands& operands) {
  size_t bytes = 1;
  for (const auto& step : steps) bytes = std::max(bytes, step->ScratchBytes());
  const Numbers memory(device, static_cast<int64_t>(bytes / sizeof(float)) + 1, DType::kF32);
  const std::span<std::byte> scratch(static_cast<std::byte*>(memory.data()), bytes);
  std::vector<double> best(steps.size(), 1e30), spent(steps.size(), 0);
  for (int run = 0; run < 200; ++run) {
    bool all_done = run >= 4;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (run >= 4 && spent[i] > 0.33) continue;
      const double seconds = Seconds([&] { Run(*steps[i], operands, scratch); });
      spent[i] += seconds;
      all_done = false;
      if (run > 0) best[i] = std::min(best[i], 1e3 * seconds);
    }
    if (all_done) break;
  }
  return best;
}

// Adds all of oneDNN's kernels for a direction, in every layout, including the slow ones.
template <class Step, class Make>
void AddLibrary(const ConvDesc& desc, const Make& make, std::vector<std::unique_ptr<Step>>* steps) {
  for (const cpu::ConvLayout layout : cpu::LayoutsToTry(desc)) {
    auto fast = make(desc, layout, false), any = make(desc, layout, true);
    const std::string name = fast ? fast->Name() : "";
    if (fast) steps->push_back(std::move(fast));
    if (any && any->Name() != name) steps->push_back(std::move(any));
  }
}

struct Sum {
  double own_ms = 0, onednn_ms = 0;
  double least = 1e30, most = 0;  // gain
  int shapes = 0, layers = 0;
};

class Report {
 public:
  void Add(const std::string& kernel, const char* direction, const ZooConv& conv, double own_ms,
           double onednn_ms, const std::string& library) {
    const double gain = onednn_ms / own_ms;
    const ConvDesc& d = conv.desc;
    const std::string shape =
        Join(d.batch, "x", d.in_channels, "x", d.in[0], "x", d.in[1], " -> ", d.out_channels, ", ",
             d.kernel[0], "x", d.kernel[1], " /", d.stride[0], d.group > 1 ? " g" : "",
             d.group > 1 ? std::to_string(d.group) : "");
    std::printf("%-28s %-8s %-38s %3d %9.3f %9.3f %6.2f  %s (%s)\n", kernel.c_str(), direction,
                shape.c_str(), conv.count, own_ms, onednn_ms, gain, library.c_str(),
                conv.nets.c_str());
    std::fflush(stdout);
    Sum& sum = sums_[Join(kernel, ", ", direction)];
    sum.own_ms += conv.count * own_ms;
    sum.onednn_ms += conv.count * onednn_ms;
    sum.least = std::min(sum.least, gain);
    sum.most = std::max(sum.most, gain);
    ++sum.shapes;
    sum.layers += conv.count;
  }

  void PrintSums() const {
    std::printf("\n%-38s %6s %6s %10s %10s %6s %6s %6s\n", "kernel", "shapes", "layers", "own ms",
                "oneDNN ms", "gain", "least", "most");
    for (const auto& [name, sum] : sums_) {
      std::printf("%-38s %6d %6d %10.2f %10.2f %6.2f %6.2f %6.2f\n", name.c_str(), sum.shapes,
                  sum.layers, sum.own_ms, sum.onednn_ms, sum.onednn_ms / sum.own_ms, sum.least,
                  sum.most);
    }
  }

 private:
  std::map<std::string, Sum> sums_;
};

// Compares one convolution's kernels. Does nothing if the library is chosen anyway.
template <class Step, class Make>
void Compare(const Device& device, const ZooConv& conv, const char* direction, const Make& make,
             Report* report) {
  std::vector<std::unique_ptr<Step>> steps;
  std::string kernel;
  for (const auto& one : KernelRegistry<ConvDesc, Step>::Get().all()) {
    if (one.device != device.kind()) continue;
    if (one.priority >= priority::kLibrary) return;
    if (auto offer = one.make(device, conv.desc)) {
      kernel = one.name;
      steps.push_back(offer.Take());
      break;
    }
  }
  AddLibrary(conv.desc, make, &steps);
  if (steps.size() < 2) return;
  const std::vector<double> ms = BestMs(device, steps, Operands(device, conv.desc));
  const auto best = std::min_element(ms.begin() + 1, ms.end());
  report->Add(kernel, direction, conv, ms[0], *best,
              steps[static_cast<size_t>(best - ms.begin())]->Name());
}

void CompareAll(const Device& device, std::vector<ZooConv> convs, DType dtype) {
  std::printf("\n%s, %s\n%-28s %-8s %-38s %3s %9s %9s %6s  %s\n", device.Describe().c_str(),
              std::string(NameOf(dtype)).c_str(), "kernel", "pass", "shape", "n", "own ms",
              "oneDNN", "gain", "oneDNN's best");
  Report report;
  for (ZooConv& conv : convs) {
    conv.desc.dtype = dtype;
    Compare<ConvForward>(
        device, conv, "forward", [](const auto&... how) { return cpu::MakeOneDnnForward(how...); },
        &report);
    Compare<ConvBackwardData>(device, conv, "data", cpu::MakeOneDnnBackwardData, &report);
    Compare<ConvBackwardWeight>(device, conv, "weight", cpu::MakeOneDnnBackwardWeight, &report);
  }
  report.PrintSums();
}

int Main(int argc, char** argv) {
  int64_t batch = 64;
  std::vector<std::string> only;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--batch=")) {
      batch = std::max(1, std::atoi(word.c_str() + 8));
    } else {
      only.push_back(word);
    }
  }
  const std::vector<ZooConv> convs = ConvsOfZoo(batch, only);
  const auto device = MakeCpuDevice();
  for (const DType dtype : {DType::kF32, DType::kBF16}) CompareAll(*device, convs, dtype);
  return 0;
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) { return trainer::Main(argc, argv); }
