#pragma once

#include "compile/build.h"
#include "execute/bindings.h"

namespace trainer {

// What differs from pass to pass: the shapes of outputs that may shrink and of what depends on
// them, and which layers are skipped because an input is empty. The arena is laid out for the
// largest shapes; a value that shrinks stays where it is and uses the first part of its memory.
// Other nodes run by the program's contexts as they are.
class DynamicShapes {
 public:
  DynamicShapes(const Graph& graph, const Bindings& bindings, const CompileEnv& env);
  ~DynamicShapes();
  DynamicShapes(const DynamicShapes&) = delete;
  DynamicShapes& operator=(const DynamicShapes&) = delete;

  const Bindings::NodeContexts& Of(NodeId node) const;
  bool IsSkipped(NodeId node) const;

  // Before a node runs forward: describes and prepares its layer again where an input has another
  // shape than in the pass before. Throws kConfig as a first Setup does, and kInternal when the
  // layer asks for another treatment of its values than before.
  void BeforeForward(NodeId node);
  // After it: takes over the shapes that it gave its outputs.
  void AfterForward(NodeId node);

  // What a skipped node does: its outputs, and the gradients of its inputs, are zero.
  void SkipForward(NodeId node) const;
  void SkipBackward(NodeId node) const;

  const Shape& ShapeOf(ValueId value) const;
  // The values that no layer reads, sorted by name, and those that are weighted.
  const std::vector<NetOutput>& outputs() const { return outputs_; }
  const std::vector<NetOutput>& losses() const { return losses_; }

 private:
  struct DynamicValue {
    Shape shape;
    bool empty = false;  // in this pass, or computed from one that is
  };
  struct DynamicNode {
    Bindings::NodeContexts contexts;
    std::vector<Shape> described_for;  // the inputs' shapes at the last Setup
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
  std::vector<void*> spares_;  // where a changed shape asked for more than the arena has
};

}  // namespace trainer
