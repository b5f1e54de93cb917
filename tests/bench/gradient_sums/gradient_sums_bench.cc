// gradient_sums_bench SOLVER [ROUNDS], started by mpirun or srun: sums all gradients of the
// solver's net over the ranks, in buckets as in training, and with one MPI_Allreduce per parameter.

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "communication/all_reduce_buffer.h"
#include "trainer/analysis/timing/timing_samples.h"
#include "trainer/backend/device/meta_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/compile.h"
#include "trainer/net/net.h"
#include "trainer/parallel/failure.h"
#include "trainer/parallel/world.h"

namespace trainer {
namespace {

struct GradientSums {
  std::string net;
  int parameters = 0;  // parameters that are trained
  size_t bytes = 0;    // bytes of their gradients
  // The times of one exchange of all gradients: in buckets, and with one MPI_Allreduce per
  // parameter (empty without MPI).
  TimingSamples buckets, by_parameter;
};

// Returns the number of floats that each trained parameter's gradient has in memory.
std::vector<size_t> GradientLengths(const Graph& graph) {
  std::vector<size_t> lengths;
  for (const Param* param : graph.params) {
    if (param->lr_mult == 0) continue;
    lengths.push_back(static_cast<size_t>(ParamStore::PaddedCount(param->count())));
  }
  return lengths;
}

void SumInBuckets(Communicator& group, std::span<float> values,
                  const std::vector<size_t>& lengths) {
  size_t at = 0;
  const int count = static_cast<int>(lengths.size());
  for (int i = 0; i < count; ++i) {
    const size_t length = lengths[static_cast<size_t>(i)];
    group.OnGradientReady(i, values.subspan(at, length));
    at += length;
  }
  for (int i = 0; i < count; ++i) group.WaitGradient(i);
}

// Returns milliseconds, or nullopt without MPI.
std::optional<double> SumByParameter(World& world, std::span<float> values,
                                     const std::vector<size_t>& lengths) {
  double seconds = 0;
  size_t at = 0;
  for (const size_t length : lengths) {
    const std::optional<double> one = world.AllReduceByMpi(values.subspan(at, length));
    if (!one) return std::nullopt;
    seconds += *one;
    at += length;
  }
  return seconds * 1000;
}

std::string ToText(const GradientSums& sums) {
  std::string text =
      Join(sums.net, ": ", sums.parameters, " parameters, ", Bytes(sums.bytes),
           " of gradients; summed in buckets in ", Fixed(sums.buckets.Median(), 2), " ms");
  if (!sums.by_parameter.empty()) {
    text += Join(", with one MPI_Allreduce per parameter in ", Fixed(sums.by_parameter.Median(), 2),
                 " ms: ", Fixed(sums.by_parameter.Median() / sums.buckets.Median(), 2),
                 " times as long");
  }
  return text;
}

GradientSums SumGradients(World& world, const SolverSpec& solver, int rounds) {
  constexpr int kWarm = 2;
  const std::unique_ptr<Device> device = MakeMetaDevice();
  ParamStore params(*device);
  NetOptions options;
  options.state = solver.train.state;
  options.training = true;
  options.log = false;
  const std::unique_ptr<const Graph> graph = Compile(*solver.train.net, options, *device, params);
  const std::vector<size_t> lengths = GradientLengths(*graph);
  GradientSums sums;
  sums.net = graph->name;
  sums.parameters = static_cast<int>(lengths.size());
  for (const size_t length : lengths) sums.bytes += length * sizeof(float);
  AllReduceBuffer values(world.group(), sums.bytes);
  for (int round = 0; round < kWarm + rounds; ++round) {
    values.Write(round);
    SyncRanks(world.group());
    const double own = TimeMs([&] { SumInBuckets(world.group(), values.span(), lengths); });
    values.Check(round);
    values.Write(round);
    SyncRanks(world.group());
    const std::optional<double> mpi = SumByParameter(world, values.span(), lengths);
    if (mpi) values.Check(round);
    if (round < kWarm) continue;
    sums.buckets.Add(own);
    if (mpi) sums.by_parameter.Add(*mpi);
  }
  return sums;
}

int SumOverRanks(const std::string& solver, int rounds) {
  World* const world = JoinWorld({});
  if (world == nullptr) {
    std::cerr << "gradient_sums_bench needs several ranks: start it with mpirun or srun\n";
    return 64;
  }
  const GradientSums sums = SumGradients(*world, LoadSolver(solver), rounds);
  world->Finish();
  if (world->group().rank().rank == 0) std::cout << Wrap(ToText(sums), 0) << "\n";
  return 0;
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: gradient_sums_bench SOLVER [ROUNDS]\n";
    return 64;
  }
  constexpr int kRounds = 15;
  try {
    return trainer::LeaveWorld(
        trainer::SumOverRanks(argv[1], argc > 2 ? std::atoi(argv[2]) : kRounds));
  } catch (const trainer::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return trainer::LeaveWorld(static_cast<int>(error.code()));
  }
}
