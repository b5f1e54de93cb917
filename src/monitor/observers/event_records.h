#pragma once
// The records of TensorBoard's event files: TFRecord frames around Event messages. Each function
// makes one record. tensorflow/core/util/event.proto, summary.proto and
// tensorboard/plugins/hparams/plugin_data.proto define the field numbers.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "histogram.h"
#include "proto_bytes.h"
#include "trainer/monitor/events_observer.h"

namespace trainer {

// One record of a file: 8 bytes of length and 4 of its checksum, the data, 4 of theirs. A checksum
// is the CRC32C, turned by 15 bits and with a constant added.
std::string Framed(std::string_view data);

// When and in which iteration something happened; `seconds` since 1970.
struct EventTime {
  double seconds = 0;
  int64_t step = 0;
};

// The first record of every file.
std::string VersionEvent(const EventTime& when);
// The run begins here: what the folder's older files have from this step on counts no more.
std::string StartEvent(const EventTime& when);

// The values of one step, gathered in one record.
class SummaryEvent {
 public:
  void Scalar(const std::string& tag, float value);
  void Histogram(const std::string& tag, const trainer::Histogram& histogram);
  // `png`: the bytes of the file.
  void Image(const std::string& tag, int height, int width, int channels, std::string_view png);
  // Shown as Markdown.
  void Text(const std::string& tag, std::string_view text);
  // The settings of a run, and its end, for the table of hyperparameters. `metrics`: tags.
  void Experiment(const std::vector<Setting>& settings, const std::vector<std::string>& metrics);
  void SessionStart(const std::vector<Setting>& settings, double seconds);
  void SessionEnd(bool success, double seconds);

  bool empty() const { return summary_.text().empty(); }
  std::string Event(const EventTime& when) const;

 private:
  void Add(const ProtoBytes& value) { summary_.Message(1, value); }
  void HparamsValue(const std::string& tag, int field, const ProtoBytes& data);

  ProtoBytes summary_;
};

// The layers as a graph.
std::string GraphEvent(const EventTime& when, const std::vector<NetLayer>& layers);

}  // namespace trainer
