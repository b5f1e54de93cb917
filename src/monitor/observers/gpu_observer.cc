#include "trainer/monitor/gpu_observer.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

std::string PercentText(double share) { return Join(std::lround(100 * share), " %"); }
std::string GiB(size_t bytes) {
  return Join(std::round(static_cast<double>(bytes) / (1 << 30) * 10) / 10);
}

// Returns "93 % busy, 12.4 of 79.6 GiB, 412 of 700 W, 61 C", without the values that the driver
// does not report.
std::string TextOf(const GpuReading& gpu) {
  std::vector<std::string> parts;
  if (gpu.busy) parts.push_back(PercentText(*gpu.busy) + " busy");
  if (gpu.memory_bytes && gpu.memory_total) {
    parts.push_back(Join(GiB(*gpu.memory_bytes), " of ", GiB(*gpu.memory_total), " GiB"));
  }
  if (gpu.watts) {
    const std::string most = gpu.watts_limit ? Join(" of ", std::lround(*gpu.watts_limit)) : "";
    parts.push_back(Join(std::lround(*gpu.watts), most, " W"));
  }
  if (gpu.celsius) parts.push_back(Join(*gpu.celsius, " C"));
  if (gpu.clock_mhz) parts.push_back(Join(*gpu.clock_mhz, " MHz"));
  if (gpu.by_heat) parts.push_back("slowed down by heat");
  if (gpu.by_power) parts.push_back("at its power limit");
  if (gpu.by_hardware) parts.push_back("slowed down by hardware");
  return parts.empty() ? "the driver reports nothing" : JoinList(parts);
}

// Returns the report for observers. Its numbers are those that the driver reports.
GpuReport ReportOf(const GpuReading& gpu, int iter) {
  GpuReport report;
  report.iter = iter;
  report.text = TextOf(gpu);
  report.busy = gpu.busy.value_or(-1);
  const auto add = [&](const char* name, const auto& value) {
    if (value) report.numbers.push_back({name, static_cast<float>(*value)});
  };
  add("busy", gpu.busy);
  add("memory_busy", gpu.memory_busy);
  add("memory_bytes", gpu.memory_bytes);
  add("watts", gpu.watts);
  add("celsius", gpu.celsius);
  add("clock_mhz", gpu.clock_mhz);
  report.numbers.push_back({"slowed_by_power", gpu.by_power ? 1.0f : 0.0f});
  report.numbers.push_back({"slowed_by_heat", gpu.by_heat ? 1.0f : 0.0f});
  return report;
}

// Returns the reason for a reduced clock and what to check; "" if the driver names no reason, or if
// the clock is unknown or above 85 % of its maximum.
std::string WhySlow(const GpuReading& gpu) {
  constexpr double kMuch = 0.85;
  if (!gpu.by_heat && !gpu.by_power && !gpu.by_hardware) return "";
  if (!gpu.clock_mhz || !gpu.most_clock_mhz || *gpu.clock_mhz > kMuch * *gpu.most_clock_mhz) {
    return "";
  }
  const std::string speed =
      Join("the GPU runs at ", *gpu.clock_mhz, " of ", *gpu.most_clock_mhz, " MHz, ");
  if (gpu.by_heat) {
    const std::string heat = gpu.celsius ? Join(" (", *gpu.celsius, " C)") : "";
    return Join(speed, "because it is too hot", heat, ": check its cooling");
  }
  if (gpu.by_power) {
    const std::string limit =
        gpu.watts_limit ? Join(" of ", std::lround(*gpu.watts_limit), " W") : "";
    return Join(speed, "because it is at its power limit", limit,
                ": 'nvidia-smi -q -d POWER' shows who set it");
  }
  return speed +
         "because its power supply or board requests that: 'nvidia-smi -q -d PERFORMANCE' shows "
         "more";
}

// Reads the state of one GPU in its own thread. If the GPU no longer answers, the destructor
// abandons the thread with the memory that it uses.
class Reader {
 public:
  explicit Reader(std::unique_ptr<GpuMonitor> monitor) : shared_(std::make_unique<Shared>()) {
    shared_->monitor = std::move(monitor);
    thread_ = std::thread([shared = shared_.get()] { Run(*shared); });
  }
  ~Reader() {
    std::unique_lock<std::mutex> lock(shared_->mutex);
    shared_->ending = true;
    shared_->changed.notify_all();
    const bool ended = WaitUntil(lock, [&] { return shared_->ended; });
    lock.unlock();
    if (ended) {
      thread_.join();
    } else {
      thread_.detach();
      static_cast<void>(shared_.release());
    }
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Requests a reading and returns without waiting for it.
  void Ask() {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->asked = true;
    shared_->changed.notify_all();
  }
  // Returns the reading that arrived since the last call, if any.
  std::optional<GpuReading> Take() {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    return std::exchange(shared_->reading, std::nullopt);
  }
  // Waits up to two seconds for the reading that was requested and returns it, if it arrived.
  std::optional<GpuReading> TakeLast() {
    std::unique_lock<std::mutex> lock(shared_->mutex);
    WaitUntil(lock, [&] { return !shared_->asked; });
    return std::exchange(shared_->reading, std::nullopt);
  }

 private:
  // The state that both threads use; `mutex` guards all members but the monitor.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::unique_ptr<GpuMonitor> monitor;
    std::optional<GpuReading> reading;
    bool asked = false, ending = false, ended = false;
  };

  // Runs in the thread: takes one reading for each request until the destructor asks it to end.
  static void Run(Shared& shared) {
    std::unique_lock<std::mutex> lock(shared.mutex);
    while (!shared.ending) {
      shared.changed.wait(lock, [&] { return shared.asked || shared.ending; });
      if (!shared.asked) break;
      lock.unlock();
      const GpuReading reading = shared.monitor->Read();
      lock.lock();
      shared.reading = reading;
      shared.asked = false;
      shared.changed.notify_all();
    }
    shared.ended = true;
    shared.changed.notify_all();
  }

  // Waits until `is_so()` holds, but at most two seconds. Returns whether it holds.
  template <class F>
  bool WaitUntil(std::unique_lock<std::mutex>& lock, F is_so) {
    return shared_->changed.wait_for(lock, std::chrono::seconds(2), is_so);
  }

  std::unique_ptr<Shared> shared_;
  std::thread thread_;
};

// Returns the CPU time of all threads of this process.
double CpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// See MakeGpuObserver.
class GpuObserver final : public TrainingObserver {
 public:
  GpuObserver(std::unique_ptr<GpuMonitor> monitor, TrainingObserver& told,
              std::chrono::milliseconds pace)
      : reader_(std::move(monitor)), told_(told), pace_(pace) {}

  // Requests a reading at each display and reports it at the next one, with the times of the run
  // between the two.
  void OnIteration(const IterationReport& report) override {
    ReportReading(reader_.Take());
    const double cpu = CpuSeconds();
    const double used = cpu - std::exchange(cpu_seconds_, cpu);
    const auto now = Clock::now();
    if (report.after_last || report.iterations == 0 || !(report.seconds > 0)) return;
    if (asked_ && now - *asked_ < pace_) return;
    asked_ = now;
    iter_ = report.iter;
    work_.cores = AvailableThreads();
    work_.data_wait = report.data_seconds / report.seconds;
    work_.cores_busy = used / (report.seconds * work_.cores);
    work_.iteration_seconds = report.seconds / report.iterations;
    reader_.Ask();
  }

  void OnRanks(const RanksReport& report) override { work_.exchange_wait = report.exchange; }

  void OnEnd(const RunEnd&) override { ReportReading(reader_.TakeLast()); }

 private:
  // Passes on a reading, with a note if this one and the one before show a problem. Does nothing
  // without a reading.
  void ReportReading(const std::optional<GpuReading>& reading) {
    if (!reading) return;
    told_.OnGpu(ReportOf(*reading, iter_));
    work_.gpu = *reading;
    const std::string why = DiagnoseGpu(work_);
    const bool again = !why.empty() && had_trouble_;
    had_trouble_ = !why.empty();
    constexpr auto kQuiet = std::chrono::minutes(10);
    const auto now = Clock::now();
    if (!again || (noted_ && now - *noted_ < kQuiet)) return;
    noted_ = now;
    told_.OnNote(why);
  }

  Reader reader_;
  TrainingObserver& told_;
  std::chrono::milliseconds pace_;
  GpuUtilization work_;
  int iter_ = 0;
  double cpu_seconds_ = CpuSeconds();
  bool had_trouble_ = false;
  std::optional<Clock::time_point> asked_, noted_;
};

}  // namespace

std::string DiagnoseGpu(const GpuUtilization& work) {
  constexpr double kBusy = 0.7, kWaits = 0.15, kAllCores = 0.9;
  if (const std::string slow = WhySlow(work.gpu); !slow.empty()) return slow;
  if (!work.gpu.busy || *work.gpu.busy >= kBusy) return "";
  const std::string idle =
      Join("the GPU was busy for only ", PercentText(*work.gpu.busy), " of the last second: ");
  const bool all_cores = work.cores_busy > kAllCores;
  const std::string cores =
      Join("the ", work.cores, work.cores == 1 ? " core" : " cores", " of this process ",
           work.cores == 1 ? "does" : "do", " not keep up: request more cores (--cpus-per-task)");
  if (work.data_wait > kWaits) {
    return Join(idle, "the run waited for data ", PercentText(work.data_wait), " of the time",
                all_cores ? "; " + cores
                          : ": 'trainer dataset bench' measures how fast the data can be read");
  }
  if (work.exchange_wait > kWaits) {
    return Join(idle, "the run waited for other ranks' gradients ", PercentText(work.exchange_wait),
                " of the time: 'trainer bench-comm' measures the speed of the exchange");
  }
  if (all_cores) return idle + cores;
  return Join(idle, "its kernels are too short (", std::round(work.iteration_seconds * 1e5) / 1e2,
              " ms per iteration): a larger batch uses the GPU better ('trainer find-batch')");
}

std::unique_ptr<TrainingObserver> MakeGpuObserver(std::unique_ptr<GpuMonitor> monitor,
                                                  TrainingObserver& told,
                                                  std::chrono::milliseconds pace) {
  return std::make_unique<GpuObserver>(std::move(monitor), told, pace);
}

}  // namespace trainer
