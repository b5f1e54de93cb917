#pragma once

namespace trainer {

class Net;

// Waits until all data layers have the batches of the next `passes`, or as many as they read ahead.
// Throws what one of these passes would throw for want of its batch, while the net is as it was.
void AwaitBatches(const Net& net, int passes);

}  // namespace trainer
