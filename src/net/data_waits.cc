#include "trainer/net/data_waits.h"

#include "trainer/layers/waits.h"

namespace trainer {

double SecondsWaitedForData(const Net& net) {
  double seconds = 0;
  for (int i = 0; i < net.NumLayers(); ++i) seconds += SecondsWaitedFor(net.GetLayer(i));
  return seconds;
}

}  // namespace trainer
