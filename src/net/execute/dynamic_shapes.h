#pragma once

#include "compile/build.h"
#include "execute/bindings.h"

namespace trainer {

// Sets the shapes of outputs that may shrink, and of values that depend on them, in the contexts of
// Bindings, and skips layers that have an empty input. The arena is planned for the largest shapes;
// a smaller value uses the first part of its buffer. All functions take nodes with
// has_dynamic_shape.
class DynamicShapes {
 public:
  DynamicShapes(const Graph& graph, Bindings& bindings, const CompileEnv& env);
  ~DynamicShapes();
  DynamicShapes(const DynamicShapes&) = delete;
  DynamicShapes& operator=(const DynamicShapes&) = delete;

  // Called before a node runs forward: repeats Setup and Prepare of its layer if the shape of an
  // input has changed. Returns false if the node must not run in this pass, and sets its outputs to
  // zero. Throws kConfig like the first Setup, and kInternal if the layer declares other treatment
  // of its values than before.
  bool BeforeForward(NodeId node);
  // Called after a node ran forward: records the shapes that it gave its outputs.
  void TakeShapes(NodeId node);
  // Called before a node runs backward. Returns false if the node must not run in this pass, and
  // sets its input gradients to zero.
  bool BeforeBackward(NodeId node) const;

  // The shape, in the last pass, of a value with is_dynamic.
  const Shape& ShapeOf(ValueId value) const { return values_.at(value).shape; }

 private:
  struct DynamicValue {
    Shape shape;
    bool empty = false;  // it, or a value that it is computed from, is empty in this pass
  };
  struct DynamicNode {
    std::vector<Shape> described_for;  // input shapes at the last Setup
    bool skipped = false;
  };

  void SetupAgain(NodeId id, DynamicNode& varying);
  const Shape& CurrentShape(ValueId value) const;
  std::span<std::byte> Grown(std::span<std::byte> held, size_t bytes);

  const Graph& graph_;
  Bindings& bindings_;
  CompileEnv env_;
  std::map<ValueId, DynamicValue> values_;
  std::map<NodeId, DynamicNode> nodes_;
  std::vector<void*> spares_;  // memory for shapes that need more than the arena has
};

}  // namespace trainer
