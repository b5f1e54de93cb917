#pragma once
// The MPI library, opened when ranks need it. A process that trains alone neither loads nor starts
// it.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trainer {

// The world of mpirun or srun. The thread that created the object makes all calls. Throws
// kUnavailable (MPI cannot be used) or kPeerLost, with the call and the reason.
class Mpi {
 public:
  // Why this build has no MPI; "" if it has.
  static std::string WhyNot();
  // Opens the library and joins the world.
  static std::unique_ptr<Mpi> Start();

  virtual ~Mpi() = default;
  virtual int rank() const = 0;
  virtual int count() const = 0;
  // "Open MPI v4.1.4"
  virtual std::string Version() = 0;
  // What each rank gave, by rank; all give the same number of bytes.
  virtual std::vector<std::string> AllGather(const std::string& own) = 0;
  // Whether it accepts addresses of a GPU's memory, i.e. it was built with CUDA and found it.
  virtual bool TakesGpuMemory() const { return false; }
  // The library's own all-reduce, for comparison and for numbers in a GPU's memory.
  virtual void AllReduce(std::span<float> values) = 0;

  // Starts a message of a known length.
  virtual void Send(std::span<const std::byte> bytes, int rank, int tag) = 0;
  virtual void Receive(std::span<std::byte> bytes, int rank, int tag) = 0;
  // Whether all started messages are complete; until then no thread touches their bytes. Sets
  // *missing to the rank of one that is not complete, or -1.
  virtual bool AllDone(int* missing) = 0;

  // Messages of any length below 2 GiB. SendDetached keeps the bytes until the message is sent.
  // TryReceive takes a message that has arrived from any rank; a short message may overtake a long
  // one of the same rank. SendsDone: whether all messages are sent.
  virtual void SendDetached(std::vector<std::byte> bytes, int rank, int tag) = 0;
  virtual bool TryReceive(int tag, int* rank, std::vector<std::byte>* bytes) = 0;
  virtual bool SendsDone() = 0;

  // Sends a heartbeat to a rank, and whether one came from it since the last call.
  virtual void SendHeartbeat(int rank) = 0;
  virtual bool DrainHeartbeats(int rank) = 0;

  // Leaves the world, with all others.
  virtual void Finish() = 0;
  // Ends the processes of the world.
  virtual void Abort(int code) = 0;
};

}  // namespace trainer
