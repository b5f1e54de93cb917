#pragma once
// The watchdog: a thread that ends the run if a rank would otherwise wait for ever.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "node/control_block.h"

namespace trainer {

struct WatchdogTimes {
  std::chrono::milliseconds warn_after{60'000};  // time until a silent rank is reported
  std::chrono::milliseconds give_up{600'000};    // time until it ends the run (--peer_timeout)
  // How long a rank may take to end by itself after a failure, for example to finish a snapshot.
  std::chrono::milliseconds grace{5'000};
};

// While this rank waits, the watchdog checks that the ranks for which it waits are alive, and ends
// the run if they are not; the first rank that notices writes the message. If any rank has failed,
// the watchdog ends this process unless it ends by itself in time.
class Watchdog {
 public:
  // `names` are the names of all ranks, such as "rank 1 (node7, process 4711)". The arguments must
  // outlive the object.
  Watchdog(const ControlBlock& block, int local, const std::vector<std::string>& names,
           const WatchdogTimes& times);
  ~Watchdog();

 private:
  // The last progress that was seen of a rank of this node.
  struct Seen {
    uint32_t progress = 0;
    int64_t changed = 0;  // when `progress` last changed
  };

  void Loop();
  void DetectSuspension(int64_t now);
  void CheckPeers(int64_t now);
  void CheckPeer(int local, int64_t silent);
  void CheckRemoteWait(int64_t now);
  bool IsWaitingFor(int local) const;
  bool IsFirstReport(int local) const;
  void EndRunWithout(int rank, const std::string& message) const;

  const ControlBlock& block_;
  int local_;
  RankStatus& own_;
  const std::vector<std::string>& names_;
  WatchdogTimes times_;
  std::vector<Seen> seen_;
  int64_t looked_ = 0;  // when Loop last looked
  int64_t awake_since_ = 0;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace trainer
