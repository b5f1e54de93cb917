#pragma once
// The sequence part shared by RNN and LSTM.

#include <array>

#include "trainer/backend/loops/reduce.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Computes T steps of N sequences together, with G = gates * H numbers per step for H = num_output:
//   gates_t (N, G) = x_t W_x^T + b [+ static W_s^T] + (cont_t * h_{t-1}) W_h^T.
// The terms without h are one product for all steps. Subclasses define the cell: Step and
// StepBackward. States (h, and c if there are two) are kept for all steps, because Backward runs
// through all of them (backpropagation through time). The states after the last step are the
// initial states of the next pass (State memory) or, with expose_hidden, outputs; gradients do not
// cross passes. As in Caffe's RecurrentLayer.
class RecurrentLayer : public Layer {
 public:
  void Setup(SetupContext& ctx) final;
  void Prepare(PrepareContext& ctx) final;
  void Forward(const RunContext& run) final;
  void Backward(const RunContext& run) final;
  std::string kernel() const final { return project_x_->kernel(); }
  // Returns the kernels that declined any of the layer's products, each line once.
  std::vector<std::string> skipped_kernels() const final { return skipped_kernels_; }
  int64_t Macs() const final { return macs_; }

 protected:
  RecurrentLayer(const LayerSpec& spec, int gates, int states)
      : spec_(spec), gate_count_(gates), state_count_(states) {}

  // Declares what output 0 needs beyond h: parameters after W_h, a saved output, scratch. Nothing
  // by default.
  virtual void SetupOutput(SetupContext&) {}
  // Makes the products of these parameters.
  virtual void PrepareOutput(PrepareContext&) {}
  // Computes the states after step t from its gates, which it may overwrite, and the states before
  // it.
  virtual void Step(const RunContext& run, int64_t t) = 0;
  // Computes output 0 from the states of all steps.
  virtual void Output(const RunContext& run) = 0;
  // Returns the gradient of h (T, N, H) through output 0; adds to the gradients of the parameters
  // after W_h. Called only if output 0 has a gradient.
  virtual const float* OutputBackward(const RunContext& run) = 0;
  // Sets DGates(t) from the gradient of h_t, which is dh (or 0 if null) + Carry(0), and the
  // gradient of the other state, Carry(1), which it replaces by the gradient of the previous state.
  virtual void StepBackward(const RunContext& run, int64_t t, const float* dh) = 0;

  // Makes a matrix product and reserves the scratch memory that it needs (Rest).
  std::unique_ptr<GemmPrimitive> MakeProduct(PrepareContext& ctx, const GemmDesc& desc);
  // Reserves this many floats of scratch; returns the offset in floats.
  int64_t TakeScratch(int64_t floats);

  // Returns the gates of step t, (N, G), in the workspace: their inputs, or what Step replaced them
  // by.
  float* Gates(const RunContext& run, int64_t t) const { return Kept(run) + t * n_ * GateWidth(); }
  // Returns state `s` (0 is h) before step t, or after the last step for t = T.
  float* State(const RunContext& run, int s, int64_t t) const {
    return Kept(run) + steps_ * n_ * GateWidth() + (s * (steps_ + 1) + t) * n_ * width_;
  }
  // Returns cont of step t (N): 0 where a sequence starts, else 1.
  const float* Cont(const RunContext& run, int64_t t) const { return run.Input(1).f32() + t * n_; }
  // Returns the gradient of the gates' inputs of step t, (N, G).
  float* DGates(const RunContext& run, int64_t t) const {
    return At(run, dgates_at_) + t * n_ * GateWidth();
  }
  // Returns the gradient of state `s`, (N, H), that Backward passes from each step to the one
  // before it.
  float* Carry(const RunContext& run, int s) const { return At(run, carry_at_) + s * n_ * width_; }
  // Returns scratch memory at an offset that TakeScratch returned.
  static float* At(const RunContext& run, int64_t offset) {
    return reinterpret_cast<float*>(run.Scratch().data()) + offset;
  }
  // Returns the scratch that products may use.
  std::span<std::byte> Rest(const RunContext& run) const {
    return run.Scratch().subspan(static_cast<size_t>(floats_) * sizeof(float));
  }
  // Returns the number of the first parameter after W_h.
  int FirstOutputParam() const { return has_static_ ? 4 : 3; }

  const LayerSpec& spec() const { return spec_; }
  int64_t steps() const { return steps_; }
  int64_t sequences() const { return n_; }
  int64_t width() const { return width_; }

 private:
  int64_t GateWidth() const { return gate_count_ * width_; }
  // Returns the workspace: the gates of all steps, then the states.
  static float* Kept(const RunContext& run) {
    return reinterpret_cast<float*>(run.Workspace().data());
  }
  // Reads num_output and the shapes of the inputs. Throws kConfig for shapes that do not fit.
  void ReadInputs(SetupContext& ctx);
  // Throws kConfig for a wrong number of inputs or outputs; expose_hidden adds one of each per
  // state.
  void CheckCounts(SetupContext& ctx) const;
  // Throws kConfig unless an input has this shape; `what` says what it holds.
  void RequireShape(SetupContext& ctx, int input, const Shape& shape, const char* what) const;
  // Divides workspace and scratch: see the offsets below.
  void SetupMemory(SetupContext& ctx);
  void PrepareProducts(PrepareContext& ctx);
  const float* RowMajorInput(const RunContext& run, int input, int64_t offset) const;
  // Adds the gradients of W_x and b, and computes the input's, for all steps in one product each.
  void BackwardX(const RunContext& run);
  // Adds the gradient of W_s and computes the static input's, from the gates' gradients summed over
  // the steps.
  void BackwardStatic(const RunContext& run);
  // Adds the gradient of W_h for all steps in one product.
  void BackwardHidden(const RunContext& run);
  // Copies the states before the first step from the last pass or, with expose_hidden, the inputs.
  void LoadFirstStates(const RunContext& run);
  // Copies the states after the last step to the next pass or, with expose_hidden, the outputs.
  void StoreLastStates(const RunContext& run);

  LayerSpec spec_;
  int gate_count_, state_count_;
  bool exposed_ = false, has_static_ = false;
  int first_state_ = 2;  // with expose_hidden, the input that holds the initial h
  int64_t steps_ = 0, n_ = 0, x_width_ = 0, static_width_ = 0, width_ = 0;
  int64_t macs_ = 0;
  // Offsets in scratch, in floats: inputs in row-major order if memory has another order (x,
  // static); the (N, G) term of the static input (fixed); cont * h (hidden); the gates' gradients;
  // the states' gradients, passed from step to step (carry).
  int64_t floats_ = 0, x_at_ = 0, static_at_ = 0, fixed_at_ = 0, hidden_at_ = 0, dgates_at_ = 0,
          carry_at_ = 0;
  size_t product_bytes_ = 0;
  std::vector<std::string> skipped_kernels_;
  std::unique_ptr<GemmPrimitive> project_x_, project_static_, project_hidden_;
  std::unique_ptr<GemmPrimitive> x_weight_gradient_, static_weight_gradient_,
      hidden_weight_gradient_;
  std::unique_ptr<GemmPrimitive> x_gradient_, static_gradient_, hidden_gradient_;
};

}  // namespace trainer
