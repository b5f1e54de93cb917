#pragma once
// MPI, opened when ranks need it: a process that trains alone neither loads nor starts it.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trainer {

// The world of mpirun or srun. Every call is made by the thread that made the object. Errors are
// thrown as kUnavailable (MPI itself cannot be had) or kPeerLost, with the call and the reason.
class MpiLibrary {
 public:
  // Why this build has no MPI; "" where it has.
  static std::string WhyNot();
  // Opens the library and joins the world.
  static std::unique_ptr<MpiLibrary> Start();

  virtual ~MpiLibrary() = default;
  virtual int rank() const = 0;
  virtual int count() const = 0;
  // "Open MPI v4.1.4"
  virtual std::string Version() = 0;
  // What each rank gave, by rank; all give as many bytes.
  virtual std::vector<std::string> AllGather(const std::string& own) = 0;
  // Whether it takes addresses of a GPU's memory, too: it was built with CUDA, and found it.
  virtual bool TakesGpuMemory() const { return false; }
  // The library's own sum: to compare with, and for numbers in a GPU's memory.
  virtual void AllReduce(std::span<float> values) = 0;

  // Messages under way, by number.
  virtual void Send(std::span<const std::byte> bytes, int rank, int tag) = 0;
  virtual void Receive(std::span<std::byte> bytes, int rank, int tag) = 0;
  // Whether all of them are done, which are then forgotten; any thread of this rank may not touch
  // their bytes before. The rank of one that is not, or -1, goes to `*missing`.
  virtual bool AllDone(int* missing) = 0;

  // Messages of any length below 2 GiB, that nobody waits for: sends one, whose bytes are kept
  // until it has gone; takes one that is there, from any rank, those of each in their order, though
  // a short one may overtake a long one on its way. PostsDone: whether all that were sent have
  // gone.
  virtual void Post(std::vector<std::byte> bytes, int rank, int tag) = 0;
  virtual bool TakePosted(int tag, int* rank, std::vector<std::byte>* bytes) = 0;
  virtual bool PostsDone() = 0;

  // A sign of life to another rank, and whether any came from it since the last call.
  virtual void SendBeat(int rank) = 0;
  virtual bool TakeBeats(int rank) = 0;

  // Leaves the world, with all others.
  virtual void Finish() = 0;
  // Ends the processes of the world.
  virtual void Abort(int code) = 0;
};

}  // namespace trainer
