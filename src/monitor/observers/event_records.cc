#include "event_records.h"

#include <map>
#include <set>

#include "trainer/base/random/crc32c.h"

namespace trainer {
namespace {

// Returns the checksum of TFRecord; see Framed.
uint32_t MaskedCrc(std::string_view data) {
  const uint32_t crc = Crc32c(data.data(), data.size());
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Appends the bytes of a number, little endian.
template <class T>
void AppendRaw(T value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Returns an Event message with its time, to which the caller adds the content.
ProtoBytes EventAt(const EventTime& when) {
  return ProtoBytes().Double(1, when.seconds).Int(2, when.step);
}

// Returns the SummaryMetadata that assigns a value to a plugin of TensorBoard.
ProtoBytes Metadata(const std::string& plugin, std::string_view content) {
  return ProtoBytes().Message(1, ProtoBytes().Bytes(1, plugin).Bytes(2, content));
}

double NumberOf(const Setting& setting) { return std::stod(setting.value); }

// Returns the name, with a number after it if it is taken already, and adds it to `taken`. Caffe
// lets several layers have one name; nodes of a graph must not.
std::string UniqueName(const std::string& name, std::set<std::string>* taken) {
  std::string unique = name;
  for (int i = 2; !taken->insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  return unique;
}

}  // namespace

std::string Framed(std::string_view data) {
  std::string record;
  record.reserve(data.size() + 16);
  AppendRaw(static_cast<uint64_t>(data.size()), &record);
  AppendRaw(MaskedCrc(record), &record);
  record += data;
  AppendRaw(MaskedCrc(data), &record);
  return record;
}

std::string VersionEvent(const EventTime& when) {
  ProtoBytes event = EventAt(when);
  event.Bytes(3, "brain.Event:2").Message(10, ProtoBytes().Bytes(1, "trainer"));
  return Framed(event.text());
}

std::string StartEvent(const EventTime& when) {
  constexpr int kStart = 1;
  return Framed(EventAt(when).Message(7, ProtoBytes().Int(1, kStart)).text());
}

void SummaryEvent::Scalar(const std::string& tag, float value) {
  Add(ProtoBytes().Bytes(1, tag).Float(2, value));
}

void SummaryEvent::Histogram(const std::string& tag, const trainer::Histogram& histogram) {
  const HistogramBuckets buckets = histogram.Buckets();
  ProtoBytes proto;
  proto.Double(1, histogram.min()).Double(2, histogram.max());
  proto.Double(3, static_cast<double>(histogram.count()));
  proto.Double(4, histogram.sum()).Double(5, histogram.sum_of_squares());
  proto.Doubles(6, buckets.limits).Doubles(7, buckets.counts);
  Add(ProtoBytes().Bytes(1, tag).Message(5, proto));
}

void SummaryEvent::Image(const std::string& tag, int height, int width, int channels,
                         std::string_view png) {
  ProtoBytes image;
  image.Int(1, height).Int(2, width).Int(3, channels).Bytes(4, png);
  Add(ProtoBytes().Bytes(1, tag).Message(4, image));
}

void SummaryEvent::Text(const std::string& tag, std::string_view text) {
  constexpr int kString = 7;
  const ProtoBytes shape = ProtoBytes().Message(2, ProtoBytes().Int(1, 1));
  ProtoBytes tensor;
  tensor.Int(1, kString).Message(2, shape).Bytes(8, text);
  Add(ProtoBytes().Bytes(1, tag).Message(9, Metadata("text", "")).Message(8, tensor));
}

// The plugin reads the metadata only. A value must have a tensor too, so it is a single 0.
void SummaryEvent::HparamsValue(const std::string& tag, int field, const ProtoBytes& data) {
  constexpr int kFloat = 1;
  const ProtoBytes shape = ProtoBytes().Message(2, ProtoBytes().Int(1, 1));
  const float zero = 0;
  ProtoBytes tensor;
  tensor.Int(1, kFloat).Message(2, shape);
  tensor.Bytes(5, {reinterpret_cast<const char*>(&zero), sizeof zero});
  const ProtoBytes content = ProtoBytes().Message(field, data);
  Add(ProtoBytes()
          .Bytes(1, tag)
          .Message(9, Metadata("hparams", content.text()))
          .Message(8, tensor));
}

void SummaryEvent::Experiment(const std::vector<Setting>& settings,
                              const std::vector<std::string>& metrics) {
  constexpr int kString = 1, kNumber = 3;
  ProtoBytes experiment;
  for (const Setting& setting : settings) {
    experiment.Message(
        4, ProtoBytes().Bytes(1, setting.name).Int(4, setting.is_number ? kNumber : kString));
  }
  for (const std::string& tag : metrics) {
    experiment.Message(5, ProtoBytes().Message(1, ProtoBytes().Bytes(2, tag)));
  }
  HparamsValue("_hparams_/experiment", 2, experiment);
}

void SummaryEvent::SessionStart(const std::vector<Setting>& settings, double seconds) {
  ProtoBytes start;
  for (const Setting& setting : settings) {
    ProtoBytes value;
    if (setting.is_number) {
      value.Double(2, NumberOf(setting));
    } else {
      value.Bytes(3, setting.value);
    }
    start.Message(1, ProtoBytes().Bytes(1, setting.name).Message(2, value));
  }
  HparamsValue("_hparams_/session_start_info", 3, start.Double(5, seconds));
}

void SummaryEvent::SessionEnd(bool success, double seconds) {
  constexpr int kSuccess = 1, kFailure = 2;
  HparamsValue("_hparams_/session_end_info", 4,
               ProtoBytes().Int(1, success ? kSuccess : kFailure).Double(2, seconds));
}

std::string SummaryEvent::Event(const EventTime& when) const {
  return Framed(EventAt(when).Message(5, summary_).text());
}

std::string GraphEvent(const EventTime& when, const std::vector<NetLayer>& layers) {
  constexpr int kProducer = 22;  // the version of the format
  ProtoBytes graph;
  std::map<std::string, std::string> writers;  // blob -> node and output
  std::set<std::string> taken;
  for (const NetLayer& layer : layers) {
    const std::string name = UniqueName(layer.name, &taken);
    ProtoBytes node;
    node.Bytes(1, name).Bytes(2, layer.type);
    for (const std::string& input : layer.inputs) {
      const auto writer = writers.find(input);
      if (writer != writers.end()) node.Bytes(3, writer->second);
    }
    graph.Message(1, node);
    for (size_t i = 0; i < layer.outputs.size(); ++i) {
      writers[layer.outputs[i]] = i == 0 ? name : name + ":" + std::to_string(i);
    }
  }
  graph.Message(4, ProtoBytes().Int(1, kProducer));
  return Framed(EventAt(when).Bytes(4, graph.text()).text());
}

}  // namespace trainer
