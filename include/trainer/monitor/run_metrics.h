#pragma once
// The course of a run, read from its metrics or its log.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error/error.h"

namespace trainer {

// The outputs of a net in one iteration.
struct MetricRow {
  double iter = 0;
  double seconds = 0;  // since the run began, without pauses between its starts
  double rate = 0;     // the last learning rate that was reported before; NaN: none
  std::vector<std::pair<std::string, double>> outputs;
};

struct MetricPoint {
  double iter = 0, value = 0;
};

// The metrics of a run over all its starts, without iterations that a later start repeated.
struct RunMetrics {
  std::string path;  // as given
  std::string net;
  std::vector<MetricRow> train;
  std::vector<std::vector<MetricRow>> tests;  // by test net
  std::vector<MetricPoint> loss, rate;        // of displayed iterations
  // Only in runs with a folder. The last four are fractions of the time.
  std::vector<MetricPoint> images_per_second, iterations_per_second, data_wait;
  std::vector<MetricPoint> ranks_computing, ranks_exchange, ranks_data;

  int64_t first_iter = 0, last_iter = 0, max_iter = 0;  // of the last start; 0: unknown
  int64_t starts = 0;
  double seconds = 0;                         // of training, over all starts
  double start_seconds = 0;                   // of the last start
  double first_time = 0, last_time = 0;       // of the first start and the last line, since 1970
  bool ended = false, stopped_early = false;  // according to the last start
  std::optional<double> end_loss;             // smoothed; only in runs with a folder that ended
  std::string model;                          // the newest snapshot
  // The files of the weights that tests used, by iteration: averaged weights if the run has them.
  std::vector<std::pair<int64_t, std::string>> weights;
};

// Reads a log of this program or of Caffe, in the forms of 2013 to 2020 and of NVIDIA's and Intel's
// versions: lines with the prefix of glog, also with the year. Outputs of tests that have no names
// are called score[0], score[1], ... If the file holds several starts, iterations that a later
// start repeats replace the earlier ones. Throws kData if the file has no line of a training run.
RunMetrics ReadTrainingLog(const std::string& path);
// Reads metrics.jsonl. Leaves out lines that a later start repeats, lines that are not JSON, such
// as an incomplete last one, and lines without an "event". Throws kData if no start is in the file.
RunMetrics ReadMetrics(const std::string& path);
// Reads the metrics of a run: the metrics.jsonl of a folder, a file .jsonl, or a log. Throws
// kNoInput if the folder is not the folder of a run, else as the readers above do.
RunMetrics ReadRunMetrics(const std::string& path);

// Removes the rows and points of iteration `iter` and later ones.
void DropFrom(double iter, RunMetrics* history);

// Returns rows as the table that Caffe's parse_log.py writes: NumIters,Seconds,LearningRate and the
// outputs of the first row. Numbers have the format of Python; an output that a row lacks is an
// empty cell.
std::string LogCsv(const std::vector<MetricRow>& rows);

}  // namespace trainer
