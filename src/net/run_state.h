#pragma once

#include "program.h"

namespace trainer {

// What differs from pass to pass: the shapes of outputs that may shrink and of what depends on
// them, and which layers are skipped because an input is empty. The arena is laid out for the
// largest shapes; a value that shrinks stays where it is and uses the first part of its memory.
// Other steps run by the program's contexts as they are.
class RunState {
 public:
  RunState(const Graph& graph, const Program& program, const BuildEnv& env);
  ~RunState();
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  const Program::Contexts& Of(StepId step) const;
  bool IsSkipped(StepId step) const;

  // Before a step runs forward: describes and prepares its layer again where an input has another
  // shape than in the pass before. Throws kConfig as a first Describe does, and kInternal when the
  // layer asks for another treatment of its values than before.
  void BeforeForward(StepId step);
  // After it: takes over the shapes that it gave its outputs.
  void AfterForward(StepId step);

  // What a skipped step does: its outputs, and the gradients of its inputs, are zero.
  void SkipForward(StepId step) const;
  void SkipBackward(StepId step) const;

  const Shape& ShapeOf(ValueId value) const;
  // The values that no layer reads, sorted by name, and those that are weighted.
  const std::vector<NetOutput>& outputs() const { return outputs_; }
  const std::vector<NetOutput>& losses() const { return losses_; }

 private:
  struct Varying {
    Shape shape;
    bool empty = false;  // in this pass, or computed from one that is
  };
  struct VaryingStep {
    Program::Contexts contexts;
    std::vector<Shape> described_for;  // the inputs' shapes at the last Describe
    bool skipped = false;
  };

  void AddStep(StepId id);
  void CollectOutputs();
  void DescribeAgain(StepId id, VaryingStep& varying);
  void TakeShapes(StepId id, VaryingStep& varying);
  std::span<std::byte> Grown(std::span<std::byte> held, size_t bytes);

  const Graph& graph_;
  const Program& program_;
  BuildEnv env_;
  std::map<ValueId, Varying> values_;
  std::map<StepId, VaryingStep> steps_;
  std::vector<NetOutput> outputs_, losses_;
  std::vector<void*> spares_;  // where a changed shape asked for more than the arena has
};

}  // namespace trainer
