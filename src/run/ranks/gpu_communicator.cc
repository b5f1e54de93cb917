#include "ranks/gpu_communicator.h"

#include <glog/logging.h>

#include <algorithm>

#include "ranks/consistency.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/backend/device/gpu_communicator.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

// Returns the PCI address of a GPU, "0000:1b:00.0", or "GPU 0" if it is unknown.
std::string AddressOf(int gpu) {
  const std::vector<std::string> all = ListGpus();
  const auto index = static_cast<size_t>(gpu);
  return index < all.size() && !all[index].empty() ? all[index] : Join("GPU ", gpu);
}

// Called by rank 0. Logs the GPU of each rank and returns whether two ranks have one GPU; throws
// kUsage for them unless `allowed`. Each entry of `gpus` is the rank's host, a newline and the
// GPU's address.
bool FindShared(const World& world, const std::vector<std::string>& gpus, bool allowed) {
  bool shared = false;
  for (size_t rank = 0; rank < gpus.size(); ++rank) {
    const std::string address = gpus[rank].substr(gpus[rank].find('\n') + 1);
    LOG(INFO) << "  " << world.topology().names[rank] << ": " << EscapeControl(address);
    const auto before = static_cast<size_t>(std::ranges::find(gpus, gpus[rank]) - gpus.begin());
    if (before == rank) continue;
    shared = true;
    if (allowed) continue;
    throw Error(
        ErrorCode::kUsage,
        Join(world.topology().names[before], " and ", world.topology().names[rank],
             " would use the same GPU, ", EscapeControl(address),
             ": name one GPU for each rank (--gpu=0,1 or --gpu=all), let the batch system give "
             "each rank its own (srun --gpus-per-task=1), or allow sharing with --share_gpu"));
  }
  return shared;
}

// Logs the GPU of each rank. Returns whether ranks share one; without --share_gpu, sharing
// makes rank 0 throw kUsage.
bool RequireDistinctGpus(bool share_gpu, World& world, const DeviceChoice& choice) {
  Communicator& group = world.group();
  const std::vector<std::string> gpus =
      group.Gather(Join(world.topology().host, "\n", AddressOf(choice.gpu.id)));
  return group.BroadcastBool(group.rank().rank == 0 && FindShared(world, gpus, share_gpu));
}

// Returns the reason why gradients must be all-reduced in the host's memory; "" if there is none.
std::string WhyByHost(const std::string& way, const World& world,
                      const caffe::SolverParameter& solver, CompressionType wire, bool shared) {
  if (way == "host") return "because of --exchange=host";
  if (shared) return "because ranks share a GPU";
  const bool rounds = wire != CompressionType::kF32 && !world.DescribeSent().empty();
  if (rounds) return Join("because gradients are sent as ", NameOf(wire));
  if (solver.virtual_ranks() <= 1) return "";
  return "because virtual_ranks need a fixed order of sums, and NCCL and MPI do not keep one";
}

// Makes the communicator that `way`, the value of --exchange, asks for, and logs which it is.
// "auto" tries NCCL, then MPI, then sums in the host's memory. `shared`: several ranks compute on
// one GPU.
std::unique_ptr<Communicator> MakeGpuCommunicator(const std::string& way, World& world,
                                                  const Device& device,
                                                  const caffe::SolverParameter& solver,
                                                  CompressionType wire, bool shared) {
  GpuGroupOptions options = {&world.group(), [&world] { world.Poll(); }, world.bucket_floats()};
  if (world.mpi_takes_gpu_memory()) {
    options.sum_by_mpi = [&world](std::span<float> values, const std::function<void()>& use_gpu) {
      world.SumByMpi(values, use_gpu);
    };
  }
  const std::string by_host = WhyByHost(way, world, solver, wire, shared);
  std::vector<std::string> why;
  if (!by_host.empty()) why.push_back(by_host);
  std::string note;
  const auto take = [&](const char* name, const char* who, const auto& make) {
    if (!by_host.empty() || (way != "auto" && way != name)) return std::unique_ptr<Communicator>();
    std::unique_ptr<Communicator> group = make(device, options, &note);
    if (group == nullptr) {
      why.push_back(note);
    } else {
      LOG(INFO) << "Gradients of the GPUs are summed by " << who << " (" << EscapeControl(note)
                << ")";
    }
    return group;
  };
  if (auto group = take("nccl", "NCCL", MakeNcclGroup)) return group;
  if (auto group = take("mpi", "MPI", MakeMpiGroup)) return group;
  if (way == "nccl" || way == "mpi") {
    throw Error(ErrorCode::kUnavailable, Join("--exchange=", way, ": not possible ", JoinList(why),
                                              "; use --exchange=auto"));
  }
  LOG(INFO) << "Gradients of the GPUs are summed by the host: " << EscapeControl(JoinList(why));
  return MakeStagedGroup(device, options);
}

}  // namespace

LocalRank LocalRankOf(const World* world, bool share_gpu) {
  if (world == nullptr) return {0, 1, false};
  const Topology& topology = world->topology();
  return {topology.host_local_rank, topology.host_local_size, share_gpu};
}

std::unique_ptr<Communicator> ConnectRanks(const RankOptions& options, World& world,
                                           const SolverSpec& spec, const Device& device,
                                           const DeviceChoice& choice, CompressionType wire,
                                           SolverOptions* train) {
  RequireConsistentRanks(world, spec, device, choice.gpu);
  const std::string how = world.SetCompression(wire);
  if (!how.empty()) LOG(INFO) << how;
  train->on_snapshot = [&world] { world.ResetErrorFeedback(); };
  if (choice.kind != DeviceKind::kCuda) return nullptr;
  const bool shared = RequireDistinctGpus(options.share_gpu, world, choice);
  std::unique_ptr<Communicator> group =
      MakeGpuCommunicator(options.exchange, world, device, spec.proto, wire, shared);
  train->group = group.get();
  return group;
}

}  // namespace trainer
