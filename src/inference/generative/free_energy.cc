#include "trainer/inference/generative/free_energy.h"

#include "trainer/backend/memory/device_array.h"
#include "trainer/backend/memory/nchw_copy.h"

namespace trainer {

FreeEnergy MeasureFreeEnergy(Net& net, const RbmModel& rbm, int batches) {
  const Device& device = net.device();
  const ConstTensor input = net.Value(rbm.input);
  const BoltzmannUnits& units = rbm.units;
  const int64_t rows = input.Count() / units.visible;
  const auto size = [&](int64_t width) { return static_cast<size_t>(rows * width); };
  const BoltzmannProducts products(device, units, rows);
  const DeviceFloats visible(device, size(units.visible)), hidden(device, size(units.hidden));
  const DeviceFloats scratch(device, products.ScratchBytes() / sizeof(float) + 1);
  const DeviceFloats energy(device, 1), sums(device, static_cast<size_t>(units.visible));
  const Shape matrix{rows, units.visible};
  FreeEnergy data;
  for (int i = 0; i < batches; ++i) {
    net.Forward();
    CopyToNchw(device, input, visible.data());
    products.HiddenInputs(
        rbm.weights, visible.data(), hidden.data(),
        {reinterpret_cast<std::byte*>(scratch.data()), scratch.size() * sizeof(float)});
    MeanFreeEnergy(device, units, rows, visible.data(), rbm.weights.visible_bias, hidden.data(),
                   energy.data());
    float of_batch = 0;
    device.CopyToHost(&of_batch, energy.data(), sizeof(of_batch));
    data.free_energy += of_batch / batches;
    device.AddChannelSums(ChannelSumsDesc::Of(matrix, 1), ConstTensor(visible.data(), matrix),
                          nullptr, sums.data());
  }
  data.records = rows * batches;
  data.means.resize(static_cast<size_t>(units.visible));
  device.CopyToHost(data.means.data(), sums.data(), data.means.size() * sizeof(float));
  for (float& mean : data.means) mean /= static_cast<float>(data.records);
  return data;
}

}  // namespace trainer
