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
// Poll. While this rank waits for another one, its status in the control block says so, and since
// when the other has given no sign of life; it is pinged from time to time.
class MpiRpc final : public Rpc {
 public:
  // The largest message of MPI, whose counts are ints.
  static constexpr size_t kMostBytes = size_t{1} << 30;

  // `wake` lets the other thread call Poll soon; `check` throws if the run has failed. A message
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

  // While one lives, this rank waits for a rank of another node.
  class Waiting {
   public:
    Waiting(MpiRpc& post, int rank);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    RankStatus& status_;
  };

  // Whether any rank may call this one, so that Poll must be called.
  bool IsOpen() const { return open_; }
  // Called by the thread that calls MPI: does what can be done without waiting. Returns after which
  // time to call it again at the latest.
  std::chrono::nanoseconds Poll();
  // Called before MPI is finalized, when no rank makes calls any more.
  void Drain();

 private:
  // kFragment: more bytes of the same message follow.
  enum class Form : uint32_t { kQuestion, kReply, kPing, kPong, kFragment };
  // At the end of each message.
  struct Header {
    Form form;
    uint32_t number;  // of a request: its method; of kPong: this rank's progress
    uint64_t call;    // of kPong: 1 if it waits itself, for another rank
  };
  struct Envelope {
    int rank;
    Header header;
    Bytes bytes;
  };

  void Send(Envelope envelope);
  void SendFragment(int rank, const Header& header, Bytes bytes);
  bool IsWhole(Envelope* envelope);
  void SendWaiting();
  bool TakeAll();
  void Take(Envelope envelope);
  bool AnswerAll();
  void AskForLife(int64_t now);

  Mpi& mpi_;
  RankStatus& status_;
  std::function<void()> wake_, check_;
  size_t most_bytes_;
  std::atomic<bool> open_{false};

  std::mutex answering_;
  std::vector<Handler> handlers_;  // by kind; with answering_

  std::mutex mutex_;  // of what follows
  std::condition_variable arrived_;
  std::vector<Envelope> outbox_;
  std::map<uint64_t, int> awaited_;    // calls without a reply yet, and their ranks
  std::map<uint64_t, Bytes> replies_;  // replies that were not taken yet
  uint64_t calls_ = 0;

  // Used by the thread that calls MPI.
  std::map<int, Bytes> begun_;     // by sender: fragments of a message
  std::list<Envelope> questions_;  // requests that are not answered yet
  int64_t busy_ = 0;               // when something was last done
  int64_t asked_ = 0;              // when a rank was last pinged
  uint32_t progress_ = 0;          // of the pinged rank, in its last pong
};

}  // namespace trainer
