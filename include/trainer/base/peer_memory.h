#pragma once
// Memory that the ranks of one machine share, for those who do not wait for each other's calls.

#include <cstddef>
#include <functional>
#include <string>

namespace trainer {

// One rank's side of it. Used by the thread that trains.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  // A block that all ranks see, zeros at first, which stays until the end. Every rank allocates the
  // same blocks in the same order, and a call meets the others'.
  virtual std::byte* Allocate(size_t bytes) = 0;
  // From here on the ranks make no common calls, and one that ends without a word, but for rank 0,
  // does not end the others.
  virtual void GoApart() = 0;
  // Whether the process of a rank has ended.
  virtual bool HasEnded(int rank) = 0;
  // Throws EndedByPeer where a rank failed, and said so.
  virtual void ThrowIfFailed() = 0;
  // Calls `ready` until it is true: for a while without a pause, then whenever a rank rings for
  // this one, and now and then. Throws EndedByPeer where a rank failed, and kPeerLost where `rank`,
  // which keeps this one waiting, has ended or has done nothing for too long.
  virtual void Await(int rank, const std::function<bool()>& ready) = 0;
  // This rank is at work, and another one that awaits something should look again.
  virtual void Ring(int rank) = 0;
  // A rank in messages: "rank 1 (node7, process 4711)".
  virtual std::string NameOf(int rank) const = 0;
};

}  // namespace trainer
