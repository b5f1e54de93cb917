#pragma once

#include "compile/build.h"
#include "execute/bindings.h"

namespace trainer {

// The state that differs between passes: the shapes of outputs that may shrink and of values that
// depend on them, and which layers are skipped because an input is empty. The arena is planned for
// the largest shapes; a smaller value uses the first part of its buffer. Nodes with fixed shapes
// use the contexts of Bindings unchanged.
class DynamicShapes {
 public:
  DynamicShapes(const Graph& graph, const Bindings& bindings, const CompileEnv& env);
  ~DynamicShapes();
  DynamicShapes(const DynamicShapes&) = delete;
  DynamicShapes& operator=(const DynamicShapes&) = delete;

  const Bindings::NodeContexts& Of(NodeId node) const;
  bool IsSkipped(NodeId node) const;

  // Called before a node runs forward: repeats Setup and Prepare of its layer if the shape of an
  // input has changed. Throws kConfig like the first Setup, and kInternal if the layer declares
  // other treatment of its values than before.
  void BeforeForward(NodeId node);
  // Called after a node ran forward: records the shapes that it gave its outputs.
  void AfterForward(NodeId node);

  // Set the outputs, or the input gradients, of a skipped node to zero.
  void SkipForward(NodeId node) const;
  void SkipBackward(NodeId node) const;

  const Shape& ShapeOf(ValueId value) const;
  // The values that no layer reads, sorted by name, and the weighted outputs.
  const std::vector<NetOutput>& outputs() const { return outputs_; }
  const std::vector<NetOutput>& losses() const { return losses_; }

 private:
  struct DynamicValue {
    Shape shape;
    bool empty = false;  // it, or a value that it is computed from, is empty in this pass
  };
  struct DynamicNode {
    Bindings::NodeContexts contexts;
    std::vector<Shape> described_for;  // input shapes at the last Setup
    bool skipped = false;
  };

  void AddStep(NodeId id);
  void CollectOutputs();
  void SetupAgain(NodeId id, DynamicNode& varying);
  void TakeShapes(NodeId id, DynamicNode& varying);
  std::span<std::byte> Grown(std::span<std::byte> held, size_t bytes);

  const Graph& graph_;
  const Bindings& bindings_;
  CompileEnv env_;
  std::map<ValueId, DynamicValue> values_;
  std::map<NodeId, DynamicNode> nodes_;
  std::vector<NetOutput> outputs_, losses_;
  std::vector<void*> spares_;  // memory for shapes that need more than the arena has
};

}  // namespace trainer
