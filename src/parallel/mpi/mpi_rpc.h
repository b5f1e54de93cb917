#pragma once
// Remote procedure calls between ranks of different nodes, by MPI.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "mpi/mpi.h"
#include "node/control_block.h"
#include "trainer/base/ranks/rpc.h"

namespace trainer {

// The training thread makes calls; the thread that calls MPI sends, runs handlers and receives in
// Poll. While this rank waits for another one, its status in the control block says for which, and
// since when that rank has given no sign of life; the rank is pinged from time to time.
class MpiRpc final : public Rpc {
 public:
  // The largest message: MPI counts bytes in ints.
  static constexpr size_t kMostBytes = size_t{1} << 30;

  // `wake` makes the other thread call Poll soon; `check` throws if the run has failed. A message
  // longer than `most_bytes` is sent in fragments.
  MpiRpc(Mpi& mpi, RankStatus& status, std::function<void()> wake, std::function<void()> check,
         size_t most_bytes = kMostBytes)
      : mpi_(mpi),
        status_(status),
        wake_(std::move(wake)),
        check_(std::move(check)),
        most_bytes_(most_bytes) {}

  int Register(Handler answer) override;
  void Unregister() override;
  uint64_t CallAsync(int rank, int method, Bytes request) override;
  Bytes Wait(uint64_t call) override;

  // While a Waiting exists, the status of this rank says that it waits for `rank`, on another node.
  class Waiting {
   public:
    Waiting(MpiRpc& post, int rank);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    RankStatus& status_;
  };

  // Returns whether any rank may call this one, so that Poll must be called.
  bool IsOpen() const { return open_; }
  // Sends, receives and runs handlers as far as possible without waiting. Returns the time until
  // the next call at the latest. Called by the thread that calls MPI.
  std::chrono::nanoseconds Poll();
  // Receives what arrives until all sends are complete, for a second at most. Called before MPI is
  // finalized, when no rank makes calls any more.
  void Drain();

 private:
  // The kinds of messages. kQuestion is a request; after kFragment, more bytes of the same message
  // follow.
  enum class Form : uint32_t { kQuestion, kReply, kPing, kPong, kFragment };
  // Each message ends with a header.
  struct Header {
    Form form;
    uint32_t number;  // request: the method; kPong: the sender's progress
    uint64_t call;    // the call; kPong: 1 if the sender waits for another rank
  };
  struct Envelope {
    int rank;
    Header header;
    Bytes bytes;
  };

  void Send(Envelope envelope);
  void SendFragment(int rank, const Header& header, Bytes bytes);
  bool JoinFragments(Envelope* envelope);
  void SendQueued();
  bool ReceiveAll();
  void ProcessMessage(Envelope envelope);
  bool AnswerAll();
  void PingAwaitedRank(int64_t now);

  Mpi& mpi_;
  RankStatus& status_;
  std::function<void()> wake_, check_;
  size_t most_bytes_;
  std::atomic<bool> open_{false};

  std::mutex answering_;
  std::vector<Handler> handlers_;  // by method; guarded by answering_

  std::mutex mutex_;  // guards the members up to calls_
  std::condition_variable arrived_;
  std::vector<Envelope> outbox_;
  std::map<uint64_t, int> awaited_;    // the rank of each call without a reply
  std::map<uint64_t, Bytes> replies_;  // replies that Wait has not returned yet
  uint64_t calls_ = 0;

  // Used by the thread that calls MPI.
  std::map<int, Bytes> begun_;     // by sender: the fragments of a message so far
  std::list<Envelope> questions_;  // requests without a reply yet
  int64_t busy_ = 0;               // when something was last done
  int64_t asked_ = 0;              // when a rank was last pinged
  uint32_t progress_ = 0;          // of the pinged rank, in its last pong
};

}  // namespace trainer
