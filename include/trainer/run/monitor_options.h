#pragma once
// The options of the log and the records of a run.

#include <string>

namespace trainer {

// How a run is shown on the terminal, and where it is recorded.
struct MonitorOptions {
  std::string run = "";        // --run: a folder; "auto": <snapshot_prefix>_run; "": none
  std::string log = "";        // --log: "caffe" or "live"; "": live on a terminal
  bool log_to_stderr = false;  // glog's flags ask for the log on stderr
};

}  // namespace trainer
