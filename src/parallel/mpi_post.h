#pragma once
// Questions and replies between ranks of different machines, by MPI.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "mpi_library.h"
#include "node_block.h"
#include "trainer/base/ranks/rpc.h"

namespace trainer {

// The thread that trains asks; the one that calls MPI sends, answers and receives, whenever it
// calls Poll. While a rank is waited for its slot of the block says so, and since when it has shown
// no sign of life: it is asked for one now and then.
class MpiPost final : public Rpc {
 public:
  // Of a message of MPI, whose counts are ints.
  static constexpr size_t kMostBytes = size_t{1} << 30;

  // `wake` has the other thread call Poll soon; `check` throws when the run has failed. What is
  // longer than `most_bytes` travels in parts.
  MpiPost(MpiLibrary& mpi, RankSlot& slot, std::function<void()> wake, std::function<void()> check,
          size_t most_bytes = kMostBytes)
      : mpi_(mpi),
        slot_(slot),
        wake_(std::move(wake)),
        check_(std::move(check)),
        most_bytes_(most_bytes) {}

  int Serve(Answer answer) override;
  void Forget() override;
  uint64_t Begin(int rank, int kind, Bytes request) override;
  Bytes Await(uint64_t ticket) override;

  // While one lives, this rank waits for something that a rank of another machine does.
  class Waiting {
   public:
    Waiting(MpiPost& post, int rank);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    RankSlot& slot_;
  };

  // Whether any rank may ask this one: Poll must be called.
  bool IsOpen() const { return open_; }
  // Of the thread that calls MPI: does what can be done without waiting. Returns when to call it
  // again at the latest.
  std::chrono::nanoseconds Poll();
  // Before MPI is left, when nobody asks any more.
  void Drain();

 private:
  // kPart: more bytes of the same letter follow.
  enum class Form : uint32_t { kQuestion, kReply, kAreYouThere, kHere, kPart };
  // Behind the bytes of each message.
  struct Label {
    Form form;
    uint32_t number;  // of a question: its kind; of kHere: this rank's progress
    uint64_t ticket;  // of kHere: 1 where it waits itself, for another rank
  };
  struct Letter {
    int rank;
    Label label;
    Bytes bytes;
  };

  void Post(Letter letter);
  void PostPart(int rank, const Label& label, Bytes bytes);
  bool IsWhole(Letter* letter);
  void SendWaiting();
  bool TakeAll();
  void Take(Letter letter);
  bool AnswerAll();
  void AskForLife(int64_t now);

  MpiLibrary& mpi_;
  RankSlot& slot_;
  std::function<void()> wake_, check_;
  size_t most_bytes_;
  std::atomic<bool> open_{false};

  std::mutex answering_;
  std::vector<Answer> answers_;  // by kind; with answering_

  std::mutex mutex_;  // of what follows
  std::condition_variable arrived_;
  std::vector<Letter> outbox_;
  std::map<uint64_t, int> awaited_;    // ranks whose replies are not there
  std::map<uint64_t, Bytes> replies_;  // that nobody has taken
  uint64_t tickets_ = 0;

  // Of the thread that calls MPI.
  std::map<int, Bytes> begun_;   // by sender: parts of a letter
  std::list<Letter> questions_;  // that are not answered
  int64_t busy_ = 0;             // when something was done last
  int64_t asked_ = 0;            // for a sign of life
  uint32_t progress_ = 0;        // of the rank that was asked, at its last one
};

}  // namespace trainer
