#pragma once
// The MPI library, which is opened only if ranks need it. A process that trains alone neither loads
// nor starts it.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trainer {

// The world of mpirun or srun. All calls come from the thread that created the object. They throw
// kUnavailable (MPI cannot be used) or kPeerLost, with the call and the reason.
class Mpi {
 public:
  // Returns why this build lacks MPI; "" if it has it.
  static std::string WhyNot();
  // Opens the library, calls MPI_Init and joins the world.
  static std::unique_ptr<Mpi> Start();

  virtual ~Mpi() = default;
  virtual int rank() const = 0;
  virtual int count() const = 0;
  // Returns, for example, "Open MPI v4.1.4".
  virtual std::string Version() = 0;
  // Returns `own` of each rank, by rank. All ranks give the same number of bytes.
  virtual std::vector<std::string> AllGather(const std::string& own) = 0;
  // Returns whether MPI accepts addresses of a GPU's memory, i.e. was built with CUDA and found it.
  virtual bool TakesGpuMemory() const { return false; }
  // Replaces `values` by their sums over all ranks with the library's own all-reduce, for
  // comparison and for numbers in a GPU's memory. Collective; blocks.
  virtual void AllReduce(std::span<float> values) = 0;

  // Starts sending a message. The bytes must stay unchanged until AllDone returns true.
  virtual void Send(std::span<const std::byte> bytes, int rank, int tag) = 0;
  // Starts receiving a message of a known length.
  virtual void Receive(std::span<std::byte> bytes, int rank, int tag) = 0;
  // Returns whether all messages that Send and Receive have started are complete; until then no
  // thread may touch their bytes. Sets *missing to the rank of an incomplete one, or -1.
  virtual bool AllDone(int* missing) = 0;

  // Starts sending a message of any length below 2 GiB, and keeps its bytes until it is sent.
  virtual void SendDetached(std::vector<std::byte> bytes, int rank, int tag) = 0;
  // Takes a message of SendDetached that has arrived completely from any rank. Messages of one rank
  // are taken in the order in which it sent them. Returns false if there is none.
  virtual bool TryReceive(int tag, int* rank, std::vector<std::byte>* bytes) = 0;
  // Returns whether all messages of SendDetached are sent.
  virtual bool SendsDone() = 0;

  // Sends a heartbeat to a rank; does not block.
  virtual void SendHeartbeat(int rank) = 0;
  // Receives all heartbeats that have arrived from a rank and returns whether there were any.
  virtual bool DrainHeartbeats(int rank) = 0;

  // Leaves the world. Collective.
  virtual void Finish() = 0;
  // Ends all processes of the world.
  virtual void Abort(int code) = 0;
};

}  // namespace trainer
