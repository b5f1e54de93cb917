#pragma once
// Preflight check: finds in seconds what would stop a run or spoil its result, without training.

#include <string>
#include <utility>
#include <vector>

#include "solver.pb.h"
#include "trainer/base/text/json.h"
#include "trainer/config/net_state.h"
#include "trainer/run/device.h"
#include "trainer/run/input_options.h"
#include "trainer/run/preflight/diagnostics.h"
#include "trainer/run/training_run.h"

namespace trainer {

// A net that is checked without a run.
struct NetRequest {
  NetSource model;
  caffe::Phase phase = caffe::TRAIN;
  std::vector<std::string> weights;  // .caffemodel files
  DeviceOptions device;
  InputOptions input;
};

// The result of a check: its errors and warnings, and the figures that it computed.
struct PreflightReport {
  Diagnostics diagnostics;
  std::vector<std::pair<std::string, std::string>> lines;  // name and text of each figure
  Json figures = Json::Object();
  std::string memory, data, snapshots;  // figures of the last line, or ""
};

// Checks a run: plans the nets and their memory, reads the weights or the snapshot to start from,
// audits the data, checks the folder of the snapshots, and runs one pass of each net. After an
// error continues, to find the next one. Writes no file. The log goes to
// stderr only if `log_to_stderr`; its warnings are diagnostics. Throws kUsage for a request that
// contradicts itself.
PreflightReport Preflight(const TrainRequest& request, bool log_to_stderr = false);
// Checks one net in the same way, without a solver.
PreflightReport Preflight(const NetRequest& request, bool log_to_stderr = false);

// Returns the diagnostics, the figures, and a verdict as the last line; in colours if the standard
// output is a terminal.
std::string ToText(const PreflightReport& report);
// Returns the same for programs: "good" (no errors), counts, "findings" and "figures".
Json ToJson(const PreflightReport& report);

}  // namespace trainer
