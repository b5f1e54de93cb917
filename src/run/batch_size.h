#pragma once
// The batch size of a solver's training net, as its data layers give it, and how to change it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/ranks/rank.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Returns the layers of the training net that remain after its filter by phase, level and stage, in
// the order of the file. They point into `spec->nets`, so changing them changes the solver's net.
std::vector<LayerSpec*> TrainingLayers(SolverSpec* spec);

// Returns the same for any net of the solver.
std::vector<LayerSpec*> LayersOfUse(const NetUse& use, SolverSpec* spec);

// Calls change(layer, n) for each batch_size n of the training layers and stores the result as the
// new batch_size.
void ChangeTrainingBatches(SolverSpec* spec,
                           const std::function<int64_t(const LayerSpec&, int64_t)>& change);

// Returns the batch_size of the first layer that has one; 0 if no layer has one.
uint32_t BatchSizeOf(SolverSpec* spec);

// Sets the batch_size of the first layer to `batch`, and scales every other layer by the same
// factor. Throws kUsage if no layer has a batch_size, or if a scaled one would not be a whole
// number, at the layer that has it; then nothing is changed.
void SetBatchSize(uint32_t batch, SolverSpec* spec);

// Returns the factor by which the learning rate of the solver's type usually grows if the batch
// grows `times`-fold: linear for SGD with or without momentum (Goyal et al., arXiv:1706.02677), the
// square root for Adam (Malladi et al., arXiv:2205.10287). No value for types without such a rule.
std::optional<double> RateFactor(const SolverSpec& spec, double times);
// Returns whether RateFactor follows the square root (Adam and AdamW), a rule that is less certain
// than the linear one.
bool ScalesByRoot(const SolverSpec& spec);

// The value of --batch that asks for a search of the batch size.
inline constexpr std::string_view kBestBatch = "auto";

// Applies --batch=N before the batch is divided among ranks, and logs the change; does nothing for
// "" and kBestBatch. Throws kUsage for a value that is not a batch size, and for kBestBatch with
// several ranks or virtual ranks.
void ApplyBatchSize(const std::string& batch, const Rank& rank, SolverSpec* spec);

// Calls SetBatchSize and logs the old and the new number, with advice about the learning rate if
// they differ. `reason` follows the new number in the log.
void ChangeBatchSize(uint32_t batch, const std::string& reason, SolverSpec* spec);

}  // namespace trainer
