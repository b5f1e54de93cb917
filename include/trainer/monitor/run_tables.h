#pragma once
// The tests of a run as tables, for people and as Caffe's parse_log.py writes them.

#include <string>
#include <vector>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// The iterations and the loss of a run, and a table of the results of each test net.
std::string RunTables(const RunMetrics& run);

struct NamedFile {
  std::string name, content;
};

// <run>.train and <run>.test, the tables of parse_log.py, and <run>.svg with the curves. A second
// test net has <run>.test1.
std::vector<NamedFile> RunTableFiles(const RunMetrics& run);

}  // namespace trainer
