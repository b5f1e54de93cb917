#pragma once
// What joins machines, as a model: how long it takes to send some bytes.

#include <span>
#include <string>
#include <vector>

namespace trainer {

struct TransferTime {
  double bytes = 0;
  double seconds = 0;
};

// How long a machine takes to send bytes to others while it receives as many from them.
class Link {
 public:
  // A message of no bytes takes `latency` seconds; each further one of the same step takes
  // `per_message` more.
  Link(std::string name, double latency, double bytes_per_second, double per_message);
  // As measured: a straight line between two neighbours, and beyond the last one. The points are
  // sorted here; one that is faster than a smaller one takes the smaller one's time. Throws kData
  // for fewer than two sizes.
  Link(std::string name, std::vector<TransferTime> points, double per_message);

  const std::string& name() const { return name_; }
  // Seconds of a step that sends `bytes` in all, in `messages`.
  double Seconds(double bytes, int messages) const;
  // The part of these that does not depend on the bytes.
  double Latency(int messages) const;
  // Of large transfers.
  double BytesPerSecond() const;

 private:
  std::string name_;
  std::vector<TransferTime> points_;
  double per_message_ = 0;
};

// An interconnect that many clusters have: "10GbE", "HDR".
struct KnownLink {
  const char* name;
  double latency;           // seconds
  double bytes_per_second;  // of one machine, in each direction
  double per_message;       // seconds
  const char* what;
};
std::span<const KnownLink> KnownLinks();
// Null where no link has that name; upper and lower case are the same.
const KnownLink* FindLink(const std::string& name);
Link MakeLink(const KnownLink& known);

}  // namespace trainer
