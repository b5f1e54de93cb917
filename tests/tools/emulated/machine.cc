// Turns trainer into trainer_emulated: creates the emulated GPUs that TRAINER_EMULATED_GPU
// describes, in words separated by blanks:
//
//   gpus=2 memory=64 driver=0       how many, MiB of each, the driver's version
//   bus=3                           the PCI address of the first one
//   busy=40 celsius=80 clock=1200   NVML is there and reports this; clock: of 1980 MHz
//   reasons=4                       the reasons for a low clock, as NVML's bits
//   refuse=cudnnGet                 library calls whose names begin like this are not supported
//   fail=malloc:3:2                 the fourth call of the kind from the start of main returns 2
//   break=launch:100:700            the 101st succeeds, and its work breaks the GPU with 700
//
// The kinds are in emulated_gpu.h, here in small letters; errors are numbers of cudaError_t. At the
// end, the emulated GPU prints the mistakes of its user.

#include <emulated_gpu.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

[[noreturn]] void Refuse(const std::string& word) {
  std::fprintf(stderr, "TRAINER_EMULATED_GPU: '%s' is nothing that the emulated GPU knows\n",
               word.c_str());
  std::exit(125);
}

emulated_gpu::CallKind KindOfMachine(const std::string& name, const std::string& word) {
  using emulated_gpu::CallKind;
  if (name == "malloc") return CallKind::kMalloc;
  if (name == "launch") return CallKind::kLaunch;
  if (name == "copy") return CallKind::kCopy;
  if (name == "synchronize") return CallKind::kSynchronize;
  if (name == "create") return CallKind::kCreate;
  if (name == "other") return CallKind::kOther;
  Refuse(word);
}

// Injects `fault`, e.g. "copy:3:700".
void Inject(bool breaks, const std::string& fault, const std::string& word) {
  const size_t first = fault.find(':'), second = fault.find(':', first + 1);
  if (second == std::string::npos) Refuse(word);
  const auto kind = KindOfMachine(fault.substr(0, first), word);
  const int n = std::atoi(fault.c_str() + first + 1), error = std::atoi(fault.c_str() + second + 1);
  breaks ? emulated_gpu::InjectBreakdown(kind, n, error)
         : emulated_gpu::InjectError(kind, n, error);
}

void PrintProblems() {
  for (const std::string& problem : emulated_gpu::Problems()) {
    std::fprintf(stderr, "emulated GPU: %s\n", problem.c_str());
  }
}

const bool kReady = [] {
  const char* const text = std::getenv("TRAINER_EMULATED_GPU");
  std::istringstream words(text == nullptr ? "" : text);
  emulated_gpu::Options options;
  std::string faults;
  for (std::string word; words >> word;) {
    const std::string name = word.substr(0, word.find('=')), value = word.substr(name.size() + 1);
    const int number = std::atoi(value.c_str());
    if (name == "gpus") {
      options.devices.assign(static_cast<size_t>(number), {});
    } else if (name == "memory") {
      for (auto& gpu : options.devices) gpu.memory_bytes = static_cast<size_t>(number) << 20;
    } else if (name == "bus") {
      options.first_bus = number;
    } else if (name == "busy") {
      options.nvml.there = true;
      options.nvml.busy = static_cast<unsigned>(number);
    } else if (name == "celsius") {
      options.nvml.celsius = static_cast<unsigned>(number);
    } else if (name == "clock") {
      options.nvml.clock_mhz = static_cast<unsigned>(number);
    } else if (name == "reasons") {
      options.nvml.reasons = static_cast<unsigned>(number);
    } else if (name == "driver") {
      options.driver = number;
    } else if (name == "fail" || name == "break" || name == "refuse") {
      faults += word + " ";
    } else {
      Refuse(word);
    }
  }
  emulated_gpu::Reset(options);
  std::istringstream again(faults);
  for (std::string word; again >> word;) {
    const std::string fault = word.substr(word.find('=') + 1);
    if (word[0] == 'r') {
      emulated_gpu::RefuseLibraryCalls(fault);
    } else {
      Inject(word[0] == 'b', fault, word);
    }
  }
  std::atexit(PrintProblems);
  return true;
}();

}  // namespace
