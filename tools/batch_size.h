#pragma once
// The batch of a solver's training net, as its data layers say, and another one in its place.

#include <cstdint>
#include <vector>

#include "trainer/config/solver_spec.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace trainer {

// The layers of the training net, where they stand in the file's list.
std::vector<LayerSpec*> TrainingLayers(SolverSpec* spec);

// A batch_size that a layer of the training net gives.
struct GivenBatch {
  LayerSpec* layer = nullptr;
  google::protobuf::Message* param = nullptr;
  const google::protobuf::FieldDescriptor* field = nullptr;

  uint32_t Get() const;
  void Set(uint32_t batch) const;
};
std::vector<GivenBatch> GivenBatches(SolverSpec* spec);

// Of the first layer that gives one; 0 where none does.
uint32_t BatchSizeOf(SolverSpec* spec);

// Gives the first layer `batch` in place of its own, and the others what has the same ratio to it.
// Throws kUsage where no layer gives a batch_size, at the layer whose own would be no whole number.
void SetBatchSize(uint32_t batch, SolverSpec* spec);

}  // namespace trainer
