#pragma once
// What a layer sees when it runs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/backend/device/input_error.h"
#include "trainer/base/random/philox.h"
#include "trainer/config/layer_spec.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// The number of the present forward pass. A net has one, and all its contexts point to it: what an
// iteration does differs from the iteration before in nothing else that a host passes to a kernel.
struct PassInfo {
  uint32_t value = 0;
  // Which part of the batch the pass computes, of those that this net computes one after the other
  // as so many replicas (NetOptions::virtual_ranks), and what makes random numbers that replica's
  // own.
  int virtual_rank = 0;
  uint64_t rank_rng_salt = 0;
  bool is_reevaluation = false;   // the pass before, on the same batch
  uint32_t* on_device = nullptr;  // the same number for kernels
};

// What a step sees when it runs: addresses and shapes that hold for the whole run. Forward,
// Backward and Recompute of a step have one each. Nothing here allocates.
class RunContext {
 public:
  const Device& device() const { return *device_; }
  caffe::Phase phase() const { return phase_; }

  const ConstTensor& Input(int i) const { return in_[i]; }
  const Tensor& Output(int i) const { return out_[i]; }

  // Gradients: of Backward alone.
  const ConstTensor& GradOutput(int i) const { return grad_out_[i]; }
  // The same as memory that Backward may overwrite: in a layer that others are fused into.
  Tensor MutableGradOutput(int i) const {
    return {const_cast<void*>(grad_out_[i].data), grad_out_[i].shape, grad_out_[i].dtype};
  }
  // Only when wanted. Backward overwrites it.
  const Tensor& GradInput(int i) const { return grad_in_[i]; }
  bool NeedsGradInput(int i) const { return grad_in_[i].data != nullptr; }
  // Whether a loss depends on output i; when not, GradOutput(i).data is null.
  bool HasGradOutput(int i) const { return grad_out_[i].data != nullptr; }

  int NumInputs() const { return static_cast<int>(in_.size()); }
  int NumOutputs() const { return static_cast<int>(out_.size()); }

  // Parameters are f32. GradParam(i) is null when nobody wants it; Backward adds to it.
  float* Param(int i) const { return param_[i]; }
  float* ParamOrNull(int i) const {
    return i < static_cast<int>(param_.size()) ? param_[i] : nullptr;
  }
  float* GradParam(int i) const { return grad_param_[i]; }
  float* GradParamOrNull(int i) const {
    return i < static_cast<int>(grad_param_.size()) ? grad_param_[i] : nullptr;
  }

  // Forward's and Backward's scratch are two pieces of memory.
  std::span<std::byte> Scratch() const { return scratch_; }
  std::span<std::byte> Workspace() const { return workspace_; }
  std::span<std::byte> State() const { return state_; }
  std::span<std::byte> UploadMemory() const { return upload_memory_; }
  const float* Constants() const { return constants_; }

  // The shape, in this pass, of an output that OutputIsDynamic; Forward calls it before it writes.
  // The layers that depend on it are described and prepared again for that shape; those that depend
  // on an empty one are skipped. Throws kInternal for an output that was not declared so.
  void Resize(int i, const Shape& shape) const;

  // The context of the k-th layer that is fused into this one: its parameters and random stream.
  const RunContext& Epilogue(int k) const { return *fused_[k]; }

  // Where a kernel of Forward reports an element of an input that makes no sense. The net then
  // calls ThrowInputError: on the CPU after Forward, on a device that runs later when it reads the
  // loss. There Backward and the layers behind meet such elements, too, and must keep within
  // bounds.
  InputErrorFlag input_error() const { return InputErrorFlag(fault_); }

  // The layer's random stream, this replica's own, and the number of this forward pass since
  // training began; Backward sees its forward's number. Kernels read it where pass_counter points.
  PhiloxKey rng_key() const { return {key_.seed ^ pass_->rank_rng_salt, key_.stream}; }
  // Of NetOptions::virtual_ranks.
  int virtual_rank() const { return pass_->virtual_rank; }
  uint32_t pass() const { return pass_->value; }
  const uint32_t* pass_counter() const { return pass_->on_device; }
  // Whether this forward pass repeats the one before it on the same batch. It then leaves no trace
  // of its own in what outlives a pass: running averages, files.
  bool is_reevaluation() const { return pass_->is_reevaluation; }

 private:
  friend class Bindings;
  friend class DynamicShapes;
  const Device* device_ = nullptr;
  caffe::Phase phase_ = caffe::TEST;
  std::vector<ConstTensor> in_, grad_out_;
  std::vector<Tensor> out_, grad_in_;
  std::vector<float*> param_, grad_param_;
  std::span<std::byte> scratch_, workspace_, state_, upload_memory_;
  const float* constants_ = nullptr;
  std::vector<const RunContext*> fused_;
  uint64_t* fault_ = nullptr;
  PhiloxKey key_;
  const PassInfo* pass_ = nullptr;
  RunContext* resizable_ = nullptr;  // itself, where an output may shrink
};

}  // namespace trainer
