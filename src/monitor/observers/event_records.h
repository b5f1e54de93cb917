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

// Returns one record of a file: 8 bytes of length and 4 of its checksum, the data, 4 of their
// checksum. A checksum is the CRC-32C, rotated by 15 bits and with a constant added.
std::string Framed(std::string_view data);

// When and in which iteration something happened; `seconds` since 1970.
struct EventTime {
  double seconds = 0;
  int64_t step = 0;
};

// Returns the first record of every file, with the version of the format.
std::string VersionEvent(const EventTime& when);
// Returns the record of a start at `when.step`. TensorBoard then ignores what older files of the
// folder have from this step on.
std::string StartEvent(const EventTime& when);

// The values of one step, gathered in one record.
class SummaryEvent {
 public:
  // Adds one point of the curve `tag`.
  void Scalar(const std::string& tag, float value);
  // Adds the distribution `tag` at this step.
  void Histogram(const std::string& tag, const trainer::Histogram& histogram);
  // Adds a picture. `png` has the bytes of the file.
  void Image(const std::string& tag, int height, int width, int channels, std::string_view png);
  // Adds a text, which TensorBoard shows as Markdown.
  void Text(const std::string& tag, std::string_view text);
  // Adds the names of the settings and the tags of the metrics (`metrics`) to the table of
  // hyperparameters.
  void Experiment(const std::vector<Setting>& settings, const std::vector<std::string>& metrics);
  // Adds this run's row of settings to TensorBoard's table of hyperparameters. `seconds`: the start
  // of the run, since 1970.
  void SessionStart(const std::vector<Setting>& settings, double seconds);
  // Adds the end of this run to the table of hyperparameters, with success or failure as its state.
  void SessionEnd(bool success, double seconds);

  bool empty() const { return summary_.text().empty(); }
  // Returns all values as one record.
  std::string Event(const EventTime& when) const;

 private:
  void Add(const ProtoBytes& value) { summary_.Message(1, value); }
  // Adds the message `data` as field number `field` of HParamsPluginData.
  void HparamsValue(const std::string& tag, int field, const ProtoBytes& data);

  ProtoBytes summary_;
};

// Returns the record of the net's graph: one node per layer, with an edge for each input that an
// earlier layer writes. A layer that repeats a name gets a number after it.
std::string GraphEvent(const EventTime& when, const std::vector<NetLayer>& layers);

}  // namespace trainer
