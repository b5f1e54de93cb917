#pragma once
// From the text of a net to its graph.

#include <memory>

#include "trainer/backend/device/available_memory.h"
#include "trainer/net/graph.h"

namespace trainer {

// Decides whether Compile refuses a net that does not fit into the memory of the device. kNone is
// for nets that other machines will run in stages, and for nets whose memory is checked later, when
// a Net allocates it.
enum class SizeLimit { kDevice, kNone };

// Builds the graph of `spec` for `options.state`: filters, inserts splits, makes and prepares every
// layer, fuses layers, plans the memory. Takes no memory of the device. Parameters that `params`
// does not have yet are added to it, and have no memory until a Net allocates them. `device`,
// `params` and `spec` must outlive the graph. Throws kConfig naming the line; if several
// independent layers are wrong, an ErrorGroup. With SizeLimit::kDevice, also throws what
// RequireDeviceMemory throws.
std::unique_ptr<const Graph> Compile(const NetSpec& spec, const NetOptions& options,
                                     const Device& device, ParamStore& params,
                                     SizeLimit limit = SizeLimit::kDevice);

// Throws an error at the layer that needs the most memory if the net, with its weights, gradients
// and the state of the update rule, needs more memory than is available: kResource, or kConfig if
// no machine has so much.
void RequireDeviceMemory(const Graph& graph, const Device& device, const ParamStore& params,
                         const AvailableMemory& available);

}  // namespace trainer
