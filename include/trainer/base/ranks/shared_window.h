#pragma once
// Memory that the ranks of a machine share, and messages to those of other machines, for those who
// do not wait for each other's calls.

#include <cstddef>
#include <functional>
#include <string>

#include "trainer/base/ranks/rpc.h"

namespace trainer {

// One rank's side of it. Used by the thread that trains.
class SharedWindow {
 public:
  virtual ~SharedWindow() = default;
  // A block that all ranks of this machine see, zeros at first, which stays until the end. Every
  // rank allocates the same number of blocks in the same order, those of one machine with the same
  // bytes, and a call meets the others'.
  virtual std::byte* Allocate(size_t bytes) = 0;
  // Machines are numbered from 0, where rank 0 is.
  virtual int MachineOf(int /*rank*/) const { return 0; }
  virtual bool IsNear(int /*rank*/) const { return true; }  // on this machine
  // To ranks that are not near; null where all are.
  virtual Rpc* post() { return nullptr; }
  // From here on the ranks make no common calls. One that ends without a word does not end the
  // others of its machine, unless it is rank 0 or `needed`.
  virtual void GoApart(bool needed) = 0;
  // Whether the process of a rank has ended; of another machine's nobody knows.
  virtual bool HasEnded(int rank) = 0;
  // Throws EndedByPeer where a rank failed, and said so.
  virtual void ThrowIfFailed() = 0;
  // Calls `ready` until it is true: for a while without a pause, then whenever a rank rings for
  // this one, and now and then. Throws EndedByPeer where a rank failed, and kPeerLost where `rank`,
  // which keeps this one waiting, has ended or has done nothing for too long.
  virtual void Await(int rank, const std::function<bool()>& ready) = 0;
  // This rank is at work, and another one of this machine that awaits something should look again.
  // Also for answers of the post.
  virtual void Ring(int rank) = 0;
  // A rank in messages: "rank 1 (node7, process 4711)".
  virtual std::string NameOf(int rank) const = 0;
};

}  // namespace trainer
