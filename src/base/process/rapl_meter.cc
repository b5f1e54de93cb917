#include "trainer/base/process/rapl_meter.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Reads a number from a file. If that fails, returns nothing and sets `*problem`.
std::optional<uint64_t> ReadCounter(const std::string& path, std::string* problem) {
  errno = 0;
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  const int error = errno;
  const std::string why =
      error != 0 ? std::generic_category().message(error) : std::string("it has no number");
  *problem = Join(path, ": ", why,
                  error == EACCES ? "; since Linux 5.10 only root reads it, unless an "
                                    "administrator allows it with chmod a+r"
                                  : "");
  return std::nullopt;
}

// Returns the first line of a file without its end; "" if it cannot be read.
std::string FirstLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return EscapeControl(line);
}

// Returns the sorted names in the folder that begin with `prefix` and have no colon after it.
std::vector<std::string> ZonesIn(const std::string& folder, const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code ignored;  // the caller reports that there is no zone
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.find(':', prefix.size()) == std::string::npos) {
      names.push_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

RaplMeter::RaplMeter(const std::string& folder) {
  for (const std::string& zone : ZonesIn(folder, "intel-rapl:")) {  // AMD's have this name, too
    const std::string package = FirstLineOf(folder + "/" + zone + "/name");
    if (!package.starts_with("package")) continue;
    AddCounter(folder + "/" + zone, package);
    for (const std::string& part : ZonesIn(folder, zone + ":")) {
      const std::string name = FirstLineOf(folder + "/" + part + "/name");
      if (name == "dram") AddCounter(folder + "/" + part, "dram of " + package);
    }
  }
  if (!totals_.empty()) return;
  std::error_code ignored;
  const bool exists = std::filesystem::is_directory(folder, ignored);
  totals_.push_back({"", "processors", 0,
                     Join(folder, exists ? " has no counter of a processor (RAPL)"
                                         : " does not exist: the system has no RAPL, or a "
                                           "container hides it")});
}

void RaplMeter::AddCounter(const std::string& zone, const std::string& name) {
  EnergyTotal total{"", name, 0, ""};
  Counter counter;
  counter.file = zone + "/energy_uj";
  counter.last = ReadCounter(counter.file, &total.problem).value_or(0);
  std::string unknown_range;
  counter.range = ReadCounter(zone + "/max_energy_range_uj", &unknown_range).value_or(0);
  counters_.push_back(counter);
  totals_.push_back(total);
}

void RaplMeter::Update() {
  for (size_t i = 0; i < counters_.size(); ++i) {
    Counter& counter = counters_[i];
    EnergyTotal& total = totals_[i];
    if (!total.problem.empty()) continue;
    const std::optional<uint64_t> now = ReadCounter(counter.file, &total.problem);
    if (!now) continue;
    if (*now < counter.last && counter.range < counter.last) {
      total.problem = Join(counter.file, ": the counter started over, and its range is unknown");
      continue;
    }
    // After its range a counter continues from 0.
    const uint64_t used =
        *now >= counter.last ? *now - counter.last : counter.range - counter.last + *now;
    total.joules += 1e-6 * static_cast<double>(used);
    counter.last = *now;
  }
}

bool RaplMeter::IsReadable() const {
  return std::ranges::any_of(totals_, [](const EnergyTotal& t) { return t.problem.empty(); });
}

}  // namespace trainer
