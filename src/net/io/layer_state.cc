#include "trainer/net/layer_state.h"

#include <exception>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::string BytesOf(const Net& net, std::span<const std::byte> memory) {
  std::string bytes(memory.size(), '\0');
  net.device().CopyToHost(bytes.data(), memory.data(), memory.size());
  return bytes;
}

void SetMemory(const Net& net, const Node& node, std::span<std::byte> memory,
               const std::string& bytes) {
  if (bytes.size() == memory.size()) {
    return net.device().CopyToDevice(memory.data(), bytes.data(), bytes.size());
  }
  node.spec.FailWith(ErrorCode::kBadSnapshot,
                     Join("the snapshot has ", bytes.size(),
                          " bytes for the state of this layer, but the layer needs ", memory.size(),
                          ": batch_size or num_output has changed; use the net of the snapshot"));
}

}  // namespace

std::vector<LayerState> SaveLayerStates(const Net& net) {
  std::vector<LayerState> states;
  for (const NodeId id : net.graph().nodes.Ids()) {
    const Node& node = net.graph().nodes[id];
    LayerState state{node.key, node.layer->SaveState(), !net.StateOf(id).empty(), {}};
    for (int rank = 0; rank < net.graph().options.virtual_ranks && state.per_rank; ++rank) {
      (rank == 0 ? state.bytes : state.other_virtual_ranks.emplace_back()) =
          BytesOf(net, net.StateOf(id, rank));
    }
    if (!state.bytes.empty()) states.push_back(std::move(state));
  }
  return states;
}

void Restore(Net& net, uint32_t passes, const std::vector<LayerState>& states) {
  net.SetPasses(passes);
  for (const LayerState& state : states) {
    for (const NodeId id : net.graph().nodes.Ids()) {
      const Node& node = net.graph().nodes[id];
      if (node.key != state.layer) continue;
      if (net.StateOf(id).empty()) {
        node.layer->RestoreState(state.bytes);
        continue;
      }
      SetMemory(net, node, net.StateOf(id), state.bytes);
      for (size_t i = 0; i < state.other_virtual_ranks.size(); ++i) {
        SetMemory(net, node, net.StateOf(id, static_cast<int>(i) + 1),
                  state.other_virtual_ranks[i]);
      }
    }
  }
}

void WriteLayerFiles(Net& net, int iter) {
  std::exception_ptr failure;
  for (const NodeId id : net.graph().nodes.Ids()) {
    try {
      net.graph().nodes[id].layer->OnSnapshot(net.context(id, Direction::kForward), iter);
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainer
