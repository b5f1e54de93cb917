#pragma once
// A model of the network between machines.

#include <span>
#include <string>
#include <vector>

namespace trainer {

// A measured transfer or all-reduce.
struct TransferTime {
  double bytes = 0;
  double seconds = 0;
};

// Predicts how long a machine takes to send bytes to other machines while it receives as many.
class LinkModel {
 public:
  // An empty message takes `latency` seconds. Each further message of the same step adds
  // `per_message` seconds.
  LinkModel(std::string name, double latency, double bytes_per_second, double per_message);
  // Makes a model from measured points, in any order: interpolates linearly between two points and
  // extrapolates after the last one. A point that took less time than a smaller one is raised to
  // the smaller one's time. Throws kData for fewer than two sizes.
  LinkModel(std::string name, std::vector<TransferTime> points, double per_message);

  const std::string& name() const { return name_; }
  // Returns the seconds of a step that sends `bytes` in total, in `messages` messages.
  double Seconds(double bytes, int messages) const;
  // Returns the seconds of a step that sends `messages` empty messages.
  double Latency(int messages) const;
  // Returns the speed of large transfers.
  double BytesPerSecond() const;

 private:
  std::string name_;
  std::vector<TransferTime> points_;
  double per_message_ = 0;
};

// An interconnect that is common in clusters: "10GbE", "HDR".
struct KnownLink {
  const char* name;
  double latency;           // seconds
  double bytes_per_second;  // per machine and direction
  double per_message;       // seconds
  const char* what;
};
// Returns all common interconnects, slow ones first.
std::span<const KnownLink> KnownLinks();
// Finds a link by its name in any case. Null for an unknown name.
const KnownLink* FindLink(const std::string& name);
// Returns the model of a common interconnect.
LinkModel MakeLinkModel(const KnownLink& known);

}  // namespace trainer
