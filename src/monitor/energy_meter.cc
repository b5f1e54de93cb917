#include "trainer/monitor/energy_meter.h"

#include <utility>

namespace trainer {

EnergyMeter::EnergyMeter(EnergySources sources) : sources_(std::move(sources)) {
  if (sources_.gpu_monitor != nullptr) gpu_joules_ = sources_.gpu_monitor->Read().joules;
  if (!sources_.rapl_folder) return;
  rapl_.emplace(*sources_.rapl_folder);
  if (rapl_->IsReadable()) thread_ = std::thread([this] { Run(); });
}

EnergyMeter::~EnergyMeter() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EnergyMeter::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, sources_.pace, [this] { return ending_; })) rapl_->Update();
}

EnergyTotal EnergyMeter::ReadGpu() {
  EnergyTotal total{sources_.host, sources_.gpu, 0, sources_.gpu_problem};
  if (sources_.gpu_monitor == nullptr) return total;
  const std::optional<double> joules = sources_.gpu_monitor->Read().joules;
  if (!joules || !gpu_joules_) {
    total.problem =
        "the driver (NVML) reports no counter of energy for this GPU; NVIDIA's GPUs from Volta on "
        "have one";
  } else if (*joules < *gpu_joules_) {
    total.problem = "the counter of the driver (NVML) was reset during the run";
  } else {
    total.joules = *joules - *gpu_joules_;
  }
  return total;
}

std::vector<EnergyTotal> EnergyMeter::Read() {
  std::vector<EnergyTotal> totals;
  if (rapl_) {
    const std::lock_guard<std::mutex> lock(mutex_);
    rapl_->Update();
    totals = rapl_->totals();
    for (EnergyTotal& total : totals) total.host = sources_.host;
  }
  if (!sources_.gpu.empty()) totals.push_back(ReadGpu());
  return totals;
}

}  // namespace trainer
