#pragma once
// The thread that sees to it that no rank waits for ever.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "node_block.h"

namespace trainer {

struct WatchTimes {
  std::chrono::milliseconds warn_after{60'000};  // of waiting for a silent rank
  std::chrono::milliseconds give_up{600'000};    // --peer_timeout
  // What a failed run leaves a rank to end by itself: for a snapshot that is being written.
  std::chrono::milliseconds grace{5'000};
};

// While this rank waits, it looks whether those that it waits for live and work, and ends the run
// where they do not: the first rank that sees it says so. When any rank has failed, it ends this
// process if that does not end by itself.
class Watch {
 public:
  // `names` are of all ranks: "rank 1 (node7, process 4711)". All must outlive the object.
  Watch(const NodeBlock& block, int local, const std::vector<std::string>& names,
        const WatchTimes& times);
  ~Watch();

 private:
  // What is known of a rank of this machine.
  struct Seen {
    uint32_t progress = 0;
    int64_t changed = 0;  // when it last changed
  };

  void Loop();
  void NoteLook(int64_t now);
  void LookAtPeers(int64_t now);
  void LookAtPeer(int local, int64_t silent);
  void LookAtLink(int64_t now);
  bool IsLast(int local) const;
  bool IsFirstReport(int local) const;
  void GiveUp(int rank, const std::string& message) const;

  const NodeBlock& block_;
  int local_;
  RankSlot& own_;
  const std::vector<std::string>& names_;
  WatchTimes times_;
  std::vector<Seen> seen_;
  int64_t looked_ = 0;  // last
  int64_t awake_since_ = 0;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace trainer
