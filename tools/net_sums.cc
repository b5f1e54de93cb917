#include "net_sums.h"

#include <optional>

#include "bench_values.h"
#include "trainer/backend/plan_device.h"
#include "trainer/base/text/table.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

// How many numbers the gradient of each parameter has in memory.
std::vector<size_t> GradientLengths(const Net& net) {
  std::vector<size_t> lengths;
  for (const Param* param : net.params()) {
    if (param->lr_mult == 0) continue;
    lengths.push_back(static_cast<size_t>(ParamStore::Padded(param->count())));
  }
  return lengths;
}

void SumInBuckets(Communicator& group, std::span<float> values,
                  const std::vector<size_t>& lengths) {
  size_t at = 0;
  const int slices = static_cast<int>(lengths.size());
  for (int i = 0; i < slices; ++i) {
    const size_t length = lengths[static_cast<size_t>(i)];
    group.OnGradientReady(i, values.subspan(at, length));
    at += length;
  }
  for (int i = 0; i < slices; ++i) group.WaitFor(i);
}

// Milliseconds; nothing where there is no MPI.
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

}  // namespace

std::string NetSums::ToString() const {
  std::string text =
      Join(net, ": ", parameters, " parameters, ", Bytes(bytes),
           " of gradients; summed in buckets in ", Fixed(buckets.Median(), 2), " ms");
  if (!by_parameter.empty()) {
    text += Join(", with one MPI_Allreduce per parameter in ", Fixed(by_parameter.Median(), 2),
                 " ms: ", Fixed(by_parameter.Median() / buckets.Median(), 2), " times as long");
  }
  return text;
}

NetSums SumGradients(World& world, const SolverSpec& solver, int rounds) {
  constexpr int kWarm = 2;
  const std::unique_ptr<Device> device = MakePlanDevice();
  ParamStore params(*device);
  NetOptions options;
  options.state = solver.train.state;
  options.training = true;
  options.log = false;
  options.plan_only = true;
  const Net net(*solver.train.net, options, *device, params);
  const std::vector<size_t> lengths = GradientLengths(net);
  NetSums sums;
  sums.net = net.name();
  sums.parameters = static_cast<int>(lengths.size());
  for (const size_t length : lengths) sums.bytes += length * sizeof(float);
  BenchValues values(world.group(), sums.bytes);
  for (int round = 0; round < kWarm + rounds; ++round) {
    values.Write(round);
    Meet(world.group());
    const double own = TimeMs([&] { SumInBuckets(world.group(), values.span(), lengths); });
    values.Check(round);
    values.Write(round);
    Meet(world.group());
    const std::optional<double> mpi = SumByParameter(world, values.span(), lengths);
    if (mpi) values.Check(round);
    if (round < kWarm) continue;
    sums.buckets.Add(own);
    if (mpi) sums.by_parameter.Add(*mpi);
  }
  return sums;
}

}  // namespace trainer
