#include "trainer/net/data_waits.h"

#include "trainer/layers/waits.h"

namespace trainer {

double SecondsWaitedForData(const Net& net) {
  double seconds = 0;
  for (int i = 0; i < net.NumLayers(); ++i) seconds += SecondsWaitedFor(net.GetLayer(i));
  return seconds;
}

namespace {

// The first layer that reads records, or -1.
int FirstReader(const Net& net) {
  for (int i = 0; i < net.NumLayers(); ++i) {
    if (net.GetLayer(i).Waits() != nullptr) return i;
  }
  return -1;
}

}  // namespace

int64_t EpochOf(const Net& net) {
  const int reader = FirstReader(net);
  return reader < 0 ? -1 : EpochOf(net.GetLayer(reader));
}

int64_t RecordsPerPass(const Net& net) {
  const int reader = FirstReader(net);
  if (reader < 0) return 0;
  const Shape& shape = net.Output(reader, 0).shape;
  return shape.Rank() == 0 ? 1 : shape[0];
}

}  // namespace trainer
