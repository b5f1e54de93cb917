#pragma once
// The tests of a run as tables, for people and as Caffe's parse_log.py writes them.

#include <string>
#include <vector>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// Returns the iterations and the loss of a run in one line, and a table of the tests of each net.
std::string RunTables(const RunMetrics& run);

// A file that the caller is to write.
struct NamedFile {
  std::string name, content;
};

// Returns <run>.train and <run>.test, the tables of parse_log.py, and <run>.svg with the curves. A
// second test net has <run>.test1. Does not write the files.
std::vector<NamedFile> RunTableFiles(const RunMetrics& run);

}  // namespace trainer
