#pragma once
// What a run's folder holds beside its metrics.

#include <map>
#include <optional>
#include <string>

#include "trainer/base/text/json_reader.h"
#include "trainer/monitor/history.h"

namespace trainer {

// The content of a file of the run's folder; nothing where the run has no folder or no such file.
std::optional<std::string> FileOfRun(const RunHistory& run, const std::string& name);
// The same of JSON. What cannot be read is nothing.
std::optional<JsonObject> JsonOfRun(const RunHistory& run, const std::string& name);
// The fields of solver.prototxt that stand by themselves: "base_lr" -> "0.01".
std::map<std::string, std::string> SettingsOfRun(const RunHistory& run);

}  // namespace trainer
