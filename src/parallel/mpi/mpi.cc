#include "mpi/mpi.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

#ifdef TRAINER_MPI_LIBRARY
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <list>
#include <utility>

namespace trainer {
namespace {

// The MPI functions that are called, under their own names. Their types come from the header, and
// their addresses from the library.
struct Table {
  decltype(&MPI_Init_thread) Init_thread = nullptr;
  decltype(&MPI_Comm_rank) Comm_rank = nullptr;
  decltype(&MPI_Comm_size) Comm_size = nullptr;
  decltype(&MPI_Get_library_version) Get_library_version = nullptr;
  decltype(&MPI_Allgather) Allgather = nullptr;
  decltype(&MPI_Allreduce) Allreduce = nullptr;
  decltype(&MPI_Isend) Isend = nullptr;
  decltype(&MPI_Irecv) Irecv = nullptr;
  decltype(&MPI_Test) Test = nullptr;
  decltype(&MPI_Finalize) Finalize = nullptr;
  decltype(&MPI_Abort) Abort = nullptr;
  decltype(&MPI_Comm_set_errhandler) Comm_set_errhandler = nullptr;
  decltype(&MPI_Error_string) Error_string = nullptr;
  decltype(&MPI_Iprobe) Iprobe = nullptr;
  decltype(&MPI_Recv) Recv = nullptr;
  decltype(&MPI_Get_count) Get_count = nullptr;
  int (*Query_cuda_support)() = nullptr;  // null if the library lacks it
#ifdef OPEN_MPI                           // handles are the addresses of these objects
  void* ompi_mpi_comm_world = nullptr;
  void* ompi_mpi_byte = nullptr;
  void* ompi_mpi_float = nullptr;
  void* ompi_mpi_op_sum = nullptr;
  void* ompi_mpi_errors_return = nullptr;
  MPI_Comm world() const { return static_cast<MPI_Comm>(ompi_mpi_comm_world); }
  MPI_Datatype bytes() const { return static_cast<MPI_Datatype>(ompi_mpi_byte); }
  MPI_Datatype floats() const { return static_cast<MPI_Datatype>(ompi_mpi_float); }
  MPI_Op sum() const { return static_cast<MPI_Op>(ompi_mpi_op_sum); }
  MPI_Errhandler errors_return() const {
    return static_cast<MPI_Errhandler>(ompi_mpi_errors_return);
  }
#else  // other MPIs: handles are numbers
  MPI_Comm world() const { return MPI_COMM_WORLD; }
  MPI_Datatype bytes() const { return MPI_BYTE; }
  MPI_Datatype floats() const { return MPI_FLOAT; }
  MPI_Op sum() const { return MPI_SUM; }
  MPI_Errhandler errors_return() const { return MPI_ERRORS_RETURN; }
#endif
};

// Sets *to to the address of a symbol. Throws kUnavailable if the library lacks it.
template <class T>
void FindSymbol(void* library, const char* name, T* to) {
  void* const found = dlsym(library, name);
  if (found == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                Join("the MPI library " TRAINER_MPI_LIBRARY " has no ", name,
                     ", so it is not the MPI library of this build; load the MPI that the program "
                     "was built with"));
  }
  *to = reinterpret_cast<T>(found);
}

// Makes Open MPI send long messages over TCP in pieces. Its default, "put", waits for the receiver
// before each message. When both directions are busy, as in our all-reduces, a link then carries
// 0.6 of its capacity (100 and 300 Mbit/s, 1 MiB each way, Open MPI 4.1.4). Messages sent in pieces
// fill it. The user's own setting takes precedence.
void ChooseSettings() {
#ifdef OPEN_MPI
  setenv("OMPI_MCA_btl_tcp_flags", "send,inplace", 0);
#endif
}

// Loads the MPI library and looks up all its functions. Throws kUnavailable if the library is
// missing or is another MPI than the one of this build.
Table OpenLibrary() {
  ChooseSettings();
  // RTLD_GLOBAL, because MPI opens its own plugins, which look up its symbols.
  void* const library = dlopen(TRAINER_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                Join("these ranks need MPI, but the MPI library cannot be loaded: ", dlerror(),
                     "; install it (openmpi-bin), or start ranks on one machine with --ranks"));
  }
  Table table;
  FindSymbol(library, "MPI_Init_thread", &table.Init_thread);
  FindSymbol(library, "MPI_Comm_rank", &table.Comm_rank);
  FindSymbol(library, "MPI_Comm_size", &table.Comm_size);
  FindSymbol(library, "MPI_Get_library_version", &table.Get_library_version);
  FindSymbol(library, "MPI_Allgather", &table.Allgather);
  FindSymbol(library, "MPI_Allreduce", &table.Allreduce);
  FindSymbol(library, "MPI_Isend", &table.Isend);
  FindSymbol(library, "MPI_Irecv", &table.Irecv);
  FindSymbol(library, "MPI_Test", &table.Test);
  FindSymbol(library, "MPI_Finalize", &table.Finalize);
  FindSymbol(library, "MPI_Abort", &table.Abort);
  FindSymbol(library, "MPI_Comm_set_errhandler", &table.Comm_set_errhandler);
  FindSymbol(library, "MPI_Error_string", &table.Error_string);
  FindSymbol(library, "MPI_Iprobe", &table.Iprobe);
  FindSymbol(library, "MPI_Recv", &table.Recv);
  FindSymbol(library, "MPI_Get_count", &table.Get_count);
  table.Query_cuda_support = reinterpret_cast<int (*)()>(dlsym(library, "MPIX_Query_cuda_support"));
#ifdef OPEN_MPI
  FindSymbol(library, "ompi_mpi_comm_world", &table.ompi_mpi_comm_world);
  FindSymbol(library, "ompi_mpi_byte", &table.ompi_mpi_byte);
  FindSymbol(library, "ompi_mpi_float", &table.ompi_mpi_float);
  FindSymbol(library, "ompi_mpi_op_sum", &table.ompi_mpi_op_sum);
  FindSymbol(library, "ompi_mpi_errors_return", &table.ompi_mpi_errors_return);
#endif
  return table;
}

// Implements Mpi by calls of the loaded library.
class Library final : public Mpi {
 public:
  Library() : mpi_(OpenLibrary()) {
    int given = 0;
    ThrowUnlessSuccess(mpi_.Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given),
                       "MPI_Init_thread");
    mpi_.Comm_set_errhandler(mpi_.world(), mpi_.errors_return());
    ThrowUnlessSuccess(mpi_.Comm_rank(mpi_.world(), &rank_), "MPI_Comm_rank");
    ThrowUnlessSuccess(mpi_.Comm_size(mpi_.world(), &count_), "MPI_Comm_size");
  }

  int rank() const override { return rank_; }
  int count() const override { return count_; }

  std::string Version() override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    mpi_.Get_library_version(text, &length);
    const std::string all(text);
    return EscapeControl(all.substr(0, all.find_first_of(",\n")));
  }

  std::vector<std::string> AllGather(const std::string& own) override {
    const size_t bytes = own.size();
    std::string all(bytes * static_cast<size_t>(count_), '\0');
    ThrowUnlessSuccess(mpi_.Allgather(own.data(), ToMpiCount(bytes), mpi_.bytes(), all.data(),
                                      ToMpiCount(bytes), mpi_.bytes(), mpi_.world()),
                       "MPI_Allgather");
    std::vector<std::string> parts;
    for (int r = 0; r < count_; ++r)
      parts.push_back(all.substr(static_cast<size_t>(r) * bytes, bytes));
    return parts;
  }

  bool TakesGpuMemory() const override {
    return mpi_.Query_cuda_support != nullptr && mpi_.Query_cuda_support() == 1;
  }

  void AllReduce(std::span<float> values) override {
    ThrowUnlessSuccess(mpi_.Allreduce(MPI_IN_PLACE, values.data(), ToMpiCount(values.size()),
                                      mpi_.floats(), mpi_.sum(), mpi_.world()),
                       "MPI_Allreduce");
  }

  void Send(std::span<const std::byte> bytes, int rank, int tag) override {
    pending_.push_back({{}, rank});
    ThrowUnlessSuccess(mpi_.Isend(bytes.data(), ToMpiCount(bytes.size()), mpi_.bytes(), rank, tag,
                                  mpi_.world(), &pending_.back().request),
                       "MPI_Isend");
  }

  void Receive(std::span<std::byte> bytes, int rank, int tag) override {
    pending_.push_back({{}, rank});
    ThrowUnlessSuccess(mpi_.Irecv(bytes.data(), ToMpiCount(bytes.size()), mpi_.bytes(), rank, tag,
                                  mpi_.world(), &pending_.back().request),
                       "MPI_Irecv");
  }

  // Tests every message, because a test is also what makes MPI continue with it.
  bool AllDone(int* missing) override {
    *missing = -1;
    for (Message& message : pending_) {
      if (!IsDone(&message.request)) *missing = message.rank;
    }
    if (*missing >= 0) return false;
    pending_.clear();
    return true;
  }

  void SendDetached(std::vector<std::byte> bytes, int rank, int tag) override {
    sends_.push_back({{}, rank, std::move(bytes)});
    PendingMessage& message = sends_.back();
    ThrowUnlessSuccess(mpi_.Isend(message.bytes.data(), ToMpiCount(message.bytes.size()),
                                  mpi_.bytes(), rank, tag, mpi_.world(), &message.request),
                       "MPI_Isend");
  }

  bool SendsDone() override {
    std::erase_if(sends_, [&](PendingMessage& message) { return IsDone(&message.request); });
    return sends_.empty();
  }

  // Begins to receive a message that has arrived, without blocking, because a long one takes time.
  // Returns the first message that is complete, unless an earlier one of its sender is not.
  bool TryReceive(int tag, int* rank, std::vector<std::byte>* bytes) override {
    int there = 0;
    MPI_Status status;
    ThrowUnlessSuccess(mpi_.Iprobe(MPI_ANY_SOURCE, tag, mpi_.world(), &there, &status),
                       "MPI_Iprobe");
    if (there != 0) {
      int size = 0;
      ThrowUnlessSuccess(mpi_.Get_count(&status, mpi_.bytes(), &size), "MPI_Get_count");
      coming_.push_back({{}, status.MPI_SOURCE, std::vector<std::byte>(static_cast<size_t>(size))});
      PendingMessage& message = coming_.back();
      ThrowUnlessSuccess(mpi_.Irecv(message.bytes.data(), size, mpi_.bytes(), message.rank, tag,
                                    mpi_.world(), &message.request),
                         "MPI_Irecv");
    }
    std::vector<int> late;  // senders with an incomplete earlier message
    for (auto message = coming_.begin(); message != coming_.end(); ++message) {
      if (!IsDone(&message->request)) late.push_back(message->rank);
      if (std::ranges::count(late, message->rank) > 0) continue;
      *rank = message->rank;
      *bytes = std::move(message->bytes);
      coming_.erase(message);
      return true;
    }
    return false;
  }

  // MPI buffers messages of a few bytes, so the send does not wait for the receiver.
  void SendHeartbeat(int rank) override {
    std::erase_if(beats_, [&](MPI_Request& request) { return IsDone(&request); });
    beats_.emplace_back();
    ThrowUnlessSuccess(
        mpi_.Isend(&kBeat, 1, mpi_.bytes(), rank, kBeatTag, mpi_.world(), &beats_.back()),
        "MPI_Isend");
  }

  bool DrainHeartbeats(int rank) override {
    bool any = false;
    for (;;) {
      int there = 0;
      ThrowUnlessSuccess(mpi_.Iprobe(rank, kBeatTag, mpi_.world(), &there, MPI_STATUS_IGNORE),
                         "MPI_Iprobe");
      if (there == 0) return any;
      char beat = 0;
      ThrowUnlessSuccess(
          mpi_.Recv(&beat, 1, mpi_.bytes(), rank, kBeatTag, mpi_.world(), MPI_STATUS_IGNORE),
          "MPI_Recv");
      any = true;
    }
  }

  void Finish() override { ThrowUnlessSuccess(mpi_.Finalize(), "MPI_Finalize"); }
  void Abort(int code) override { mpi_.Abort(mpi_.world(), code); }

 private:
  struct Message {
    MPI_Request request;
    int rank;
  };

  struct PendingMessage {
    MPI_Request request;
    int rank;
    std::vector<std::byte> bytes;
  };

  // Returns whether a send or receive is complete. MPI sets a completed request to
  // MPI_REQUEST_NULL, which tests as complete again.
  bool IsDone(MPI_Request* request) const {
    int done = 0;
    ThrowUnlessSuccess(mpi_.Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }

  // Converts a size to an int, by which MPI counts. Throws kInternal if it is too large.
  static int ToMpiCount(size_t size) {
    if (size > INT_MAX) throw Error(ErrorCode::kInternal, "a message is too large for MPI");
    return static_cast<int>(size);
  }

  // Throws kPeerLost with MPI's explanation if `call` has not returned MPI_SUCCESS.
  void ThrowUnlessSuccess(int result, const char* call) const {
    if (result == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    mpi_.Error_string(result, text, &length);
    throw Error(ErrorCode::kPeerLost, Join(call, " failed: ", EscapeControl(text)));
  }

  static constexpr char kBeat = 1;
  static constexpr int kBeatTag = 100;

  Table mpi_;
  std::list<MPI_Request> beats_;              // in flight
  std::list<PendingMessage> sends_, coming_;  // in flight
  int rank_ = 0, count_ = 1;
  std::vector<Message> pending_;
};

}  // namespace

std::string Mpi::WhyNot() { return ""; }
std::unique_ptr<Mpi> Mpi::Start() { return std::make_unique<Library>(); }

}  // namespace trainer

#else

namespace trainer {

std::string Mpi::WhyNot() {
  return "this build has no MPI: install libopenmpi-dev and build again (TRAINER_MPI), or start "
         "ranks on one machine with --ranks=N";
}
std::unique_ptr<Mpi> Mpi::Start() { throw Error(ErrorCode::kUnavailable, WhyNot()); }

}  // namespace trainer

#endif
