#pragma once
// The files of a run's folder other than its metrics.

#include <map>
#include <optional>
#include <string>

#include "trainer/base/text/json_reader.h"
#include "trainer/monitor/run_metrics.h"

namespace trainer {

// Returns the content of a file of the run's folder; no value if the run has no folder or no such
// file. Does not follow symbolic links.
std::optional<std::string> FileOfRun(const RunMetrics& run, const std::string& name);
// Returns the object in a JSON file of the folder; nothing if the file is missing or damaged.
std::optional<JsonObject> JsonOfRun(const RunMetrics& run, const std::string& name);
// Returns the fields of solver.prototxt outside of messages: "base_lr" -> "0.01". The values of a
// repeated field are joined with blanks.
std::map<std::string, std::string> SettingsOfRun(const RunMetrics& run);

}  // namespace trainer
